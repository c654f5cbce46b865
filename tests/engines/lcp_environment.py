"""Where the tests marked `engines` find llama-cpp-python, and the configurations that they share."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.oracle.naive import canonical
from harness.session import Session
from harness.wire import JobError

VERSIONS = ("0.3.19", "0.3.35")

_TEMPLATE = Path(__file__).parents[2] / "prereg" / "draft" / "templates" / "conformance" / "models.json"
_DEFAULT = json.loads(_TEMPLATE.read_text("utf-8"))["llamacpp"]
MODEL: dict[str, Any] = _DEFAULT["model"]
PROMPT: list[int] = _DEFAULT["prompt"]
HORIZON: int = _DEFAULT["horizon"]
DRAFTER: dict[str, Any] = _DEFAULT["drafter"]
EOS: int = MODEL["eos"]

OFF = {"id": "off", "role": "reference", "speculation": False}
ON = {"id": "on", "role": "test", "speculation": True}
ARMS = {"off": OFF, "on": ON}

PARITY: dict[str, Any] = {"processors": [{"builtin": "prefix-parity"}]}
FEATURES: dict[str, dict[str, Any]] = {"plain": {}, "min-tokens": {"min_tokens": 3}, "prefix-parity": PARITY}


def lcp_python(version: str = "0.3.35") -> str:
    """The interpreter of an environment: PREREG_LCP_0_3_35_PYTHON (or the like), else the built one."""
    given = os.environ.get(f"PREREG_LCP_{version.replace('.', '_')}_PYTHON")
    if not given:
        from prereg.collect.runtime import environment_of, interpreter

        given = str(interpreter(environment_of(f"lcp-{version}")))
    assert Path(given).exists(), f"there is no {given}"
    return given


def configuration(features: dict[str, Any], horizon: int = HORIZON, **changes: Any) -> dict[str, Any]:
    """A configuration with these features, as a protocol would hold it."""
    return {
        "id": "case",
        "role": "probe",
        "build": "lcp-0.3.35",
        "adapter": "llamacpp",
        "model": "tiny",
        "prompt": "abcdabcdab",
        "horizon": horizon,
        "features": features,
        "drafter": DRAFTER,
        "predicates": [],
        "command": None,
        **changes,
    }


def start(session: Session, features: dict[str, Any], horizon: int = HORIZON, **changes: Any) -> str:
    """Open a configuration with these features on the shared model; its digest."""
    given = {"configuration": configuration(features, horizon), "model": MODEL, "prompt": PROMPT, "cwd": None}
    digest: str = session.ask("open", **{**given, **changes}).ok["model_sha256"]
    return digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """One arm's tree."""

    leaves: list[dict[str, Any]]
    end: dict[str, Any]

    @property
    def checks(self) -> dict[str, Any]:
        """What was checked of it."""
        checks: dict[str, Any] = self.end["admission"]
        return checks

    def law(self) -> dict[str, float]:
        """Mass by outcome."""
        found: dict[str, list[float]] = {}
        for leaf in self.leaves:
            found.setdefault(canonical(leaf["outcome"]), []).append(leaf["weight"])
        return {key: math.fsum(weights) for key, weights in found.items()}


def walk(session: Session, arm: str, **fields: Any) -> Walked:
    """Walk an arm of the open configuration."""
    leaves: list[dict[str, Any]] = []
    for message in session.stream("choices", arm=ARMS[arm], **fields):
        if "error" in message:
            raise JobError(message["error"]["code"], message["error"]["message"])
        if "ok" in message:
            return Walked(leaves=leaves, end=message["ok"])
        if "restart" in message:
            leaves.clear()
        else:
            leaves.append(message["leaf"])
    raise AssertionError("no end")


def distance(off: Walked, on: Walked) -> float:
    """Total variation of two arms' laws."""
    a, b = off.law(), on.law()
    return math.fsum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b) / 2


def departing(off: Walked, on: Walked, limit: int = 10) -> list[list[int]]:
    """The first paths of the on arm whose outcome has another mass on the off arm."""
    a, b = off.law(), on.law()
    paths = [
        leaf
        for leaf in on.leaves
        if abs(b[canonical(leaf["outcome"])] - a.get(canonical(leaf["outcome"]), 0.0)) > 1e-6
    ]
    paths.sort(key=lambda leaf: (len(leaf["choices"]), -leaf["weight"]))
    return [leaf["choices"] for leaf in paths[:limit]]


def drawn(session: Session, arm: str, seeds: Sequence[int] | range) -> list[dict[str, Any]]:
    """One draw a seed."""
    reply = session.ask("draws", arm=ARMS[arm], seeds=[str(seed) for seed in seeds], rows=1)
    return [request["draws"][0] for request in reply.requests]
