"""What the tiny study of the fixture has besides in edition 2: records, hypotheses, rows by build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from audits_slow import A, B, C, D, Json

HYPOTHESIS = "H-D1-far"
SECOND_EVENTS: list[Json] = [
    {"id": "a", "kind": "outcome", "outcome": A},
    {"id": "b", "kind": "outcome", "outcome": B},
    {"id": "c", "kind": "outcome", "outcome": C},
    {"id": "d", "kind": "outcome", "outcome": D},
    {"id": "one", "kind": "prefix", "tokens": [1]},
    {"id": "crash", "kind": "crash"},
    {"id": "broken", "kind": "violation"},
]
HALF_D = [{"outcome": A, "p": 0.5}, {"outcome": D, "p": 0.5}]
"""A mechanism that turns every B and C of the reference law into D."""


def entry(*values: Any, tokens: Any = None) -> Json:
    """An entry of a record: a value for each token, from 0 unless ``tokens`` says so."""
    return {"tokens": list(range(len(values))) if tokens is None else tokens, "values": list(values)}


TABLE: dict[tuple[int, ...], Json] = {
    (): entry(-4, -0.5, -1, "-inf"),
    (1,): entry(-3.5, -2.5, -0.5, -1.25),
    (2,): entry(-0.25, -2, -3, -4),
    (1, 3): entry(-0.5, -1.5, -2.5, -3.5),
}
"""The reference after each prefix that sequential decoding reaches before it draws another token."""
BEST = {(): [1, 2], (1,): [2, 3], (2,): [0, 1], (1, 3): [0, 1]}
"""The two tokens of the greatest values after each prefix, ascending."""
PLAN: Json = {"kind": "logprobs", "reference": "replay", "source": "the manual", "told": 2, "tolerance": 0.01}


def replayed(outcome: Json) -> list[Json]:
    """The record that the reference gives for an outcome; where it has no prefix, that of none."""
    record = []
    for i in range(len(outcome.get("tokens", ()))):
        prefix = tuple(outcome["tokens"][:i])
        prefix = prefix if prefix in TABLE else ()
        values = TABLE[prefix]["values"]
        record.append(entry(*(values[token] for token in BEST[prefix]), tokens=BEST[prefix]))
    return record


@dataclass
class Second:
    """What is to be built besides; every field may be changed by a test."""

    records: dict[str, Json] = field(default_factory=lambda: {"control": PLAN, "probe": PLAN})
    """``records`` of the protocol, by configuration."""
    table: dict[tuple[int, ...], Json] = field(default_factory=lambda: dict(TABLE))
    record: Callable[[str, str, int, Json], list[Json]] = lambda c, arm, draw, outcome: replayed(outcome)
    """What is told beside the outcome of a draw of a configuration's arm."""
    laws: dict[str, list[Json]] = field(default_factory=lambda: {"probe": HALF_D})
    """The mechanism's law of each registered configuration."""
    alpha: float | None = 0.05
    allowance: float = 0.005
    build_of: dict[str, str] = field(default_factory=dict)
    """The build of a configuration that has not `b-1`."""
    builds: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """By arm and build: rows and requests a shard, where not those of the arm."""

    def own_events(self, c: str, reference: list[Json] | None) -> list[Json]:
        """The event of a configuration's hypothesis."""
        known = [(row["outcome"], row["p"]) for row in reference or ()]
        more = [
            row["outcome"]
            for row in self.laws.get(c, ())
            if "crash" not in row["outcome"]
            and row["p"] > sum(p for outcome, p in known if outcome == row["outcome"])
        ]
        return [{"id": "hyp", "kind": "set", "outcomes": more, "hypothesis": HYPOTHESIS}] if more else []

    def record_events(self, c: str) -> list[str]:
        """The record events of a configuration (of horizon 3)."""
        if self.records.get(c, {}).get("reference") != "replay":
            return []
        return ["any", "position-1", "position-2", "position-3"]

    def amend(self, study: str, protocol: Json, events: Json) -> Json:
        """Add to the protocol and the events; what other files there are."""
        protocol["edition"] = 2
        for c in protocol["configurations"]:
            name = c["id"]
            if name in self.records:
                c["records"] = self.records[name]
            if self.record_events(name):
                events[name]["records"] = [{"prefix": [*p], "entry": e} for p, e in self.table.items()]
            if name in self.laws:
                events[name]["hypothesis"] = {"id": HYPOTHESIS, "switch": 0, "law": self.laws[name]}
        for (arm, build), (rows, shard_requests) in self.builds.items():
            plan = protocol["sampling"][arm] = dict(protocol["sampling"][arm])
            own = plan["builds"] = dict(plan.get("builds", {}))
            own[build] = {"rows": rows, "shard_requests": shard_requests}
        if not self.laws:
            return {}
        protocol["hypotheses"] = {"alpha": self.alpha, "allowance": self.allowance}
        said = {"id": HYPOTHESIS, "class": "D1", "site": "x.py:1", "statement": "It does not stop."}
        rows_ = [
            {"configuration": name, "hypothesis": HYPOTHESIS, "cause": "far", "priority": i + 1}
            for i, name in enumerate(self.laws)
        ]
        value = {"schema": "prereg/hypotheses/v1", "study": study, "hypotheses": [said]}
        return {"hypotheses.json": value | {"configurations": rows_}}
