"""The study of exact_fixture in edition 2: records beside the tokens, a mechanism for each configuration.

`same` is drawn and walked, `other` walked only. The mechanism draws the second token by another law; on trees
`other` does exactly that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from exact_fixture import exact_files, exact_protocol, tokens
from exact_leaves import FIRST, SECOND, SKEWED

from prereg.codec.study_files import parse_study
from prereg.model.study import Study

MECHANISM = "H-D1-phys"
RECORDS = {
    "kind": "scores",
    "reference": "replay",
    "source": "the documentation of scores",
    "told": 2,
    "tolerance": 0.001,
}
Change = Callable[[dict[str, Any]], None]


def second_protocol() -> dict[str, Any]:
    protocol = exact_protocol()
    protocol |= {"edition": 2, "hypotheses": {"alpha": 0.05, "allowance": 0.005}}
    protocol["configurations"][0]["records"] = dict(RECORDS)
    return protocol


def entry(law: dict[int, float]) -> dict[str, Any]:
    """A full record of log-probabilities."""
    return {"tokens": list(law), "values": [math.log(p) for p in law.values()]}


def second_files(protocol: dict[str, Any] | None = None) -> dict[str, Any]:
    """The authored files around a protocol of edition 2, as JSON values."""
    files = exact_files(second_protocol() if protocol is None else protocol)
    study = files["protocol.json"]["study"]
    pairs = [(i, j) for i in FIRST for j in SECOND]
    singles = [{"id": f"is-{i}-{j}", "kind": "outcome", "outcome": tokens(i, j)} for i, j in pairs]
    rest = [
        {"id": "other", "kind": "other"},
        {"id": "crash", "kind": "crash"},
        {
            "id": "a-h-d1-phys",
            "kind": "set",
            "outcomes": [tokens(i, j) for i, j in pairs if SKEWED[j] > SECOND[j]],
            "hypothesis": MECHANISM,
        },
    ]
    family = {
        "reference": [{"outcome": tokens(i, j), "p": FIRST[i] * SECOND[j]} for i, j in pairs],
        "events": [*singles, *rest],
        "hypothesis": {
            "id": MECHANISM,
            "switch": 0,
            "law": [{"outcome": tokens(i, j), "p": FIRST[i] * SKEWED[j]} for i, j in pairs],
        },
    }
    replay = [
        {"prefix": [], "entry": entry(FIRST)},
        *({"prefix": [i], "entry": entry(SECOND)} for i in FIRST),
    ]
    files["events.json"]["configurations"] = {
        "same": {**family, "records": replay},
        "other": json.loads(json.dumps(family)),
    }
    files["hypotheses.json"] = {
        "schema": "prereg/hypotheses/v1",
        "study": study,
        "hypotheses": [
            {
                "id": MECHANISM,
                "class": "physical buffer",
                "site": "the loop",
                "statement": "The second token is drawn from the wrong prefix.",
            }
        ],
        "configurations": [
            {"configuration": name, "hypothesis": MECHANISM, "cause": "buffer", "priority": rank}
            for rank, name in enumerate(("same", "other"), 1)
        ],
    }
    return json.loads(json.dumps(files))  # type: ignore[no-any-return]


def encoded(files: dict[str, Any]) -> dict[str, bytes]:
    return {name: json.dumps(value).encode() for name, value in files.items()}


def second_study(change: Change = lambda p: None, files: Change = lambda f: None) -> Study:
    """The study, parsed and checked; `change` may alter the protocol and `files` all files."""
    protocol = second_protocol()
    change(protocol)
    values = second_files(protocol)
    files(values)
    return parse_study(encoded(values))
