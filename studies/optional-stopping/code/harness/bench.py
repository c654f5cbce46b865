"""Measures what a build's `requests_per_second` says: `python -m harness.bench PYTHON ROWS`.

PYTHON is the interpreter of a built environment with Transformers. Prints one JSON object: for each feature,
requests a second on one core, off (with ROWS rows a request) and on. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from harness.session import Session

MODEL: dict[str, Any] = {
    "kind": "tiny-llama",
    "seed": "2198",
    "initializer_range": 0.4,
    "vocab": ["a", "b", "c", "d", "e", "f", "<eos>"],
    "eos": 6,
    "hidden": 16,
    "intermediate": 32,
    "layers": 1,
    "heads": 2,
    "context": 64,
}
"""A tiny model on which speculation faults show in a few thousand draws."""

PROMPT = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]

FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "min-new-tokens": {"min_new_tokens": 2},
    "stop-string": {"stop_strings": ["cd"]},
    "guidance": {"guidance_scale": 1.5},
    "synthid": {"watermarking": {"kind": "synthid", "keys": [654, 400, 836], "ngram_len": 5}},
}


def configuration(features: dict[str, Any], horizon: int = 3) -> dict[str, Any]:
    """A configuration with these features, as a protocol would hold it."""
    return {
        "id": "bench",
        "role": "probe",
        "build": "hf-5.17.0",
        "adapter": "hf",
        "model": "tiny",
        "prompt": "abcdabcdab",
        "horizon": horizon,
        "features": features,
        "drafter": {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 3},
        "predicates": [],
        "command": None,
    }


def rate(session: Session, speculation: bool, rows: int, seconds: float = 4.0) -> float:
    """Requests a second of the open configuration, over at least `seconds`."""
    arm = {"id": "arm", "role": "test" if speculation else "reference", "speculation": speculation}
    # The first request also prepares the engine's configuration; that is not what a long collection costs.
    session.ask("draws", arm=arm, seeds=["0"], rows=rows)
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        session.ask("draws", arm=arm, seeds=[str(done + seed) for seed in range(10)], rows=rows)
        done += 10
    return done / (time.perf_counter() - start)


def main(python: str, rows: int) -> int:
    """Measure every feature and print the result."""
    result = {}
    with Session(python) as session:
        for name, features in FEATURES.items():
            session.ask("open", configuration=configuration(features), model=MODEL, prompt=PROMPT, cwd=None)
            result[name] = {
                "off": round(rate(session, False, rows), 1),
                "on": round(rate(session, True, 1), 1),
            }
    sys.stdout.write(json.dumps({"rows": {"off": rows, "on": 1}, "requests_per_second": result}) + "\n")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python -m harness.bench PYTHON ROWS")
    raise SystemExit(main(sys.argv[1], int(sys.argv[2])))
