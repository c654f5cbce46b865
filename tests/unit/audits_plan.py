"""What the tiny study of the fixture plans, and the authored files that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from audits_second import SECOND_EVENTS, Second
from audits_slow import EVENTS, LAW, A, B, C, D, Json
from audits_trees import TOLERANCE, default_trees

ARMS = ("off", "on")
MAIN, WALK = "main", "walk"
"""The stage of draws and the exact stage."""
EXACT_PREDICTIONS: list[Json] = [
    {
        "id": "departs", "statement": "x",
        "claim": {
            "kind": "verdict", "configuration": "probe", "in": ["DEPARTS"], "channel": "exact",
        },
    },
    {
        "id": "fails", "statement": "x",
        "claim": {"kind": "verdict", "configuration": "probe", "in": ["FAILS"], "channel": "draws"},
    },
    {
        "id": "equal", "statement": "x",
        "claim": {
            "kind": "count", "configurations": ["deep", "control"], "verdict": "EQUAL_WITHIN_TOLERANCE",
            "at_least": 1, "channel": "exact",
        },
    },
]  # fmt: skip


@dataclass
class Plan:
    """What is to be built; every field may be changed by a test."""

    study: str = "tiny"
    rule: str = "channel-S"
    missing: str = "refuse"
    draws: int = 40
    rows: int = 4
    shard_requests: int = 4
    first_seed: int = 1000
    threshold: float = 0.01
    configurations: tuple[str, ...] = ("control", "probe")
    events: list[Json] = field(default_factory=lambda: list(EVENTS))
    law: list[Json] | None = field(default_factory=lambda: list(LAW))
    allowance: float | None = 0.005
    off: Callable[[str, int], Json] = lambda c, j: [A, B, A, C][j % 4]
    on: Callable[[str, int], Json] = lambda c, j: D if c == "probe" and j % 2 else [A, B, A, C][j % 4]
    proposals: Callable[[str], int] = lambda c: 3
    invalid: tuple[str, ...] = ()
    """Units that are INVALID."""
    left_out: tuple[str, ...] = ()
    """Units never collected: the collection ends incomplete."""
    predictions: list[Json] | None = None
    upto: str = "audited"
    """The last verb: sealed, collected, analysed or audited."""
    edit: Callable[[str, Any], Any] = lambda name, value: value
    """Changes an authored or machine value before it is written (and bound by what follows)."""
    no_seal_commit: bool = False
    """Commit the seal only together with the records."""
    exact: tuple[str, ...] = ()
    """The configurations of the exact stage, in its order; () for a study without one."""
    undrawn: tuple[str, ...] = ()
    """The configurations that are in the exact stage alone."""
    trees: Callable[[str, str], Json] = default_trees
    """The tree of a configuration's arm."""
    tolerance: float = TOLERANCE
    premise_alpha: float | None = 0.05
    second: Second | None = None
    """What a study of edition 2 has besides; None for one of edition 1."""

    @property
    def drawn(self) -> list[str]:
        """The configurations of the stage of draws."""
        return [c for c in self.configurations if c not in self.undrawn]

    def build_of(self, c: str) -> str:
        """The build of a configuration."""
        return self.second.build_of.get(c, "b-1") if self.second else "b-1"

    @property
    def builds(self) -> list[str]:
        """Every build that some configuration has."""
        return sorted({self.build_of(c) for c in self.configurations})

    def sizes(self, c: str, arm: str) -> tuple[int, int]:
        """Rows a request and requests a shard, in a stage of draws."""
        own = self.second.builds.get((arm, self.build_of(c))) if self.second else None
        return own or (self.rows, self.shard_requests)

    def events_of(self, c: str) -> list[Json]:
        """The listed events of a configuration."""
        return [*self.events, *(self.second.own_events(c, self.law) if self.second else ())]

    @property
    def tested(self) -> list[str]:
        """The configurations on which the premise is tested, in the order of the exact stage."""
        return [c for c in self.exact if c in self.drawn and self.premise_alpha is not None]

    @property
    def stages(self) -> dict[str, list[str]]:
        """The configurations of each stage."""
        stages = {MAIN: self.drawn, WALK: list(self.exact)}
        return {stage: names for stage, names in stages.items() if names}

    @property
    def units(self) -> list[tuple[str, str, str]]:
        """Stage, configuration and arm of every unit."""
        return [(s, c, arm) for s, names in self.stages.items() for c in names for arm in ARMS]


def exact_plan(**options: Any) -> Plan:
    """A study of which two configurations are drawn and walked, and one is walked alone."""
    given: Json = {
        "configurations": ("control", "probe", "deep"), "exact": ("deep", "probe", "control"),
        "undrawn": ("deep",), "predictions": EXACT_PREDICTIONS,
        "on": lambda c, j: [A, D if c == "probe" else B, A, C][j % 4],
    }  # fmt: skip
    return Plan(**(given | options))


def second_plan(**options: Any) -> Plan:
    """A study of edition 2, whose configurations have records and one of which has a hypothesis."""
    given: Json = {"second": Second(), "events": list(SECOND_EVENTS)}
    return Plan(**(given | options))


def only_exact(**options: Any) -> Plan:
    """A study whose only stage is exact."""
    given: Json = {
        "rule": "exact", "threshold": 0, "allowance": None, "premise_alpha": None,
        "exact": ("control", "probe"), "undrawn": ("control", "probe"),
        "predictions": EXACT_PREDICTIONS[:1],
    }  # fmt: skip
    return Plan(**(given | options))


def authored(p: Plan) -> dict[str, Json]:
    """The authored files of a study."""
    conformance = p.rule != "event-gap"
    drafter = {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 2}
    sampling = {"draws": p.draws, "rows": p.rows, "shard_requests": p.shard_requests}
    protocol = {
        "schema": "prereg/protocol/v1", "study": p.study, "title": "Tiny", "question": "Does it differ?",
        "authors": [{"name": "Ann", "principal": "ann@example.org"}],
        "template": "conformance" if conformance else "two-arm", "models": {}, "prompts": {"p": [1, 2]},
        "arms": [
            {"id": "off", "role": "reference", "speculation": False},
            {"id": "on", "role": "test", "speculation": conformance},
        ],
        "configurations": [
            {
                "id": c, "role": "probe", "about": "x", "build": p.build_of(c),
                "adapter": "hf" if p.exact or p.second else "command",
                "command": None if p.exact or p.second else ["x"],
                "model": None, "prompt": "p", "horizon": 3, "features": {"any": [1.5]},
                "drafter": drafter if conformance else None,
                "predicates": ["horizon", "letters"] if conformance else [],
            }
            for c in p.configurations
        ],
        "stages": [
            {"id": stage, "purpose": "discovery", "configurations": names}
            | ({"channel": "exact"} if stage == WALK else {})
            for stage, names in p.stages.items()
        ],
        "sampling": dict.fromkeys(ARMS, sampling) if p.drawn else {},
        "alpha": 0.05,
        "decision": {"rule": p.rule, "threshold": p.threshold, "calibration_allowance": p.allowance},
        "missing": p.missing, "stopping": {"rule": "fixed"}, "attempts": 1,
        "ceilings": {
            "study_seconds": 9, "unit_seconds": 9, "request_seconds": 9, "on_ceiling": "INVALID",
        },
        "exclusions": [], "runtime": "venv", "power": {"gap": 0.1, "witness": 0.1, "target": 0.8},
    }  # fmt: skip
    if p.exact:
        protocol["exact"] = {
            "tolerance": p.tolerance, "runs": None, "mass": 1e-9, "close_last": True, "close_floor": 0,
            "premise_alpha": p.premise_alpha,
        }  # fmt: skip
    predictions = p.predictions
    if predictions is None:
        last = p.configurations[-1]
        predictions = [
            {
                "id": "fails", "statement": "x",
                "claim": {"kind": "verdict", "configuration": last, "in": ["FAILS"]},
            },
            {
                "id": "few", "statement": "x",
                "claim": {
                    "kind": "count", "configurations": list(p.configurations), "verdict": "NOT_REJECTED",
                    "at_least": 1,
                },
            },
        ]  # fmt: skip
    events: Json = {c: {"reference": p.law, "events": p.events_of(c)} for c in p.configurations}
    rules = [
        {"id": "horizon", "rule": {"kind": "max-tokens", "n": 3}},
        {"id": "letters", "rule": {"kind": "allowed-tokens", "tokens": [0, 1, 2, 3]}},
    ]
    more = p.second.amend(p.study, protocol, events) if p.second else {}
    return more | {
        "protocol.json": protocol,
        "seeds.json": {
            "schema": "prereg/seeds/v1", "study": p.study,
            "blocks": list(_blocks(p)),
        },
        "events.json": {
            "schema": "prereg/events/v1", "study": p.study, "configurations": events,
            "harness_sha256": None if p.law is None else "a" * 64,
        },
        "predicates.json": {
            "schema": "prereg/predicates/v1", "study": p.study,
            "predicates": [{"statement": "x", "source": "y", **rule} for rule in rules],
        },
        "predictions.json": {
            "schema": "prereg/predictions/v1", "study": p.study, "predictions": predictions,
        },
    }  # fmt: skip


def _blocks(p: Plan) -> Iterator[Json]:
    first = p.first_seed
    for i, (stage, c, arm) in enumerate(p.units):
        end = first + (4 if stage == WALK else p.draws // p.sizes(c, arm)[0])
        unit = f"{stage}.{c}.{arm}"
        yield {"id": f"block-{i}", "role": "discovery", "unit": unit, "first": str(first), "end": str(end)}
        first = end
