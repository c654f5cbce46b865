"""Write a page of a made-up study with both channels and every exact verdict: to look at, and for tests.

python bench/exact_page.py FOLDER
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from bench.page import example
from bench.synthetic import SEAL, tally_of
from bench.trees import GOOD, exact_study, leaf, unit_tree
from prereg.analyse.decide import decide
from prereg.model.law import (
    Crashed,
    CrashEvent,
    Decoded,
    Event,
    Family,
    LongerEvent,
    Mass,
    MaxTokens,
    OtherEvent,
    Outcome,
    OutcomeEvent,
    Predicate,
    PrefixEvent,
    ViolationEvent,
)
from prereg.model.predictions import Prediction, VerdictClaim
from prereg.model.study import TinyModel
from prereg.model.tree import PathCheck, UnitTree
from prereg.report.page import ReportInput, render

A, B, AB = (Decoded(tokens=ids, finish="length") for ids in ((1,), (2,), (1, 2)))
LONG, LONGER = (Decoded(tokens=ids, finish="length") for ids in ((1, 2, 2), (2, 2, 2, 1)))
CRASH = Crashed(crash="IndexError")
LAW = ((A, 0.5), (B, 0.25), (AB, 0.25))
EVENTS: tuple[Event, ...] = (
    *(OutcomeEvent(id=f"o{i}", outcome=o) for i, (o, _) in enumerate(LAW)),
    OtherEvent(id="other"),
    PrefixEvent(id="starts-a", tokens=(1,)),
    LongerEvent(id="longer", than=2),
    CrashEvent(id="crash"),
    ViolationEvent(id="violation"),
)
RULE = Predicate(
    id="length", statement="at most two tokens", source="the engine's manual", rule=MaxTokens(n=2)
)
NAMES = ("same", "witness", "bounded", "idle", "void", "lost", "stale")
DRAWN = ("same", "stale")
N = 4000


def tree(
    *law: tuple[Outcome, float], proposals: int = 2, unexplored: float = 0.0, replayed: bool = True
) -> UnitTree:
    """One choice to each outcome."""
    leaves = [leaf((i,), (p,), outcome, proposals=proposals) for i, (outcome, p) in enumerate(law)]
    replay = PathCheck(checked=3, differences=int(not replayed), ok=replayed)
    return unit_tree(leaves, unexplored=unexplored, admission=replace(GOOD, replay=replay))


def both_channels() -> ReportInput:
    """Seven configurations walked, two of them drawn; one contradicts its tree, and one tree is lost."""
    family = Family(reference=tuple(Mass(outcome=o, p=p) for o, p in LAW), events=EVENTS)
    plan = exact_study(
        dict.fromkeys(NAMES, family),
        drawn=DRAWN,
        draws=N,
        premise_alpha=0.05,
        predicates=[RULE],
        predictions=[
            Prediction(
                id="same",
                statement="Without features nothing changes.",
                claim=VerdictClaim(configuration="same", in_=("EQUAL_WITHIN_TOLERANCE",), channel="exact"),
            )
        ],
    )
    model = TinyModel(
        kind="tiny-llama", seed="1", initializer_range=0.1, vocab=("<end>", "a", "b"), eos=0, hidden=16,
        intermediate=32, layers=1, heads=2, context=32,
    )  # fmt: skip
    configurations = tuple(replace(c, model="tiny") for c in plan.protocol.configurations)
    protocol = replace(plan.protocol, models={"tiny": model}, configurations=configurations)
    plan = replace(plan, protocol=protocol)
    off = tree(*LAW, proposals=0)
    on = {
        "same": tree(*LAW),
        "witness": tree((A, 0.5), (B, 0.125), (AB, 0.125), (LONGER, 0.125), (LONG, 0.0625), (CRASH, 0.0625)),
        "bounded": tree((A, 0.5), (B, 0.25), unexplored=0.25),
        "idle": tree(*LAW, proposals=0),
        "void": tree(*LAW, replayed=False),
        "stale": tree(*LAW),
    }
    trees = {f"walk.{name}.off": off for name in NAMES}
    trees |= {f"walk.{name}.on": one for name, one in on.items()}
    fair = [(o, int(N * p)) for o, p in LAW]
    stale = [(A, N // 2), (B, N // 2)]
    tallies = {f"main.{name}.off": tally_of(f"main.{name}.off", fair) for name in DRAWN}
    tallies["main.same.on"] = tally_of("main.same.on", fair, proposals=N)
    tallies["main.stale.on"] = tally_of("main.stale.on", stale, proposals=N)
    decisions = decide(plan, SEAL, tallies, {"walk.lost.on"}, trees)
    assert decisions.exact is not None
    base = example()
    audit = dict(base.audit or {})
    audit["configurations"] = []
    audit["predictions"] = []
    audit["exact"] = [
        {"id": d.id, "verdict": d.verdict, "claimed": d.verdict, "agrees": True, "differences": []}
        for d in decisions.exact.configurations
    ]
    return replace(base, study=plan, decisions=decisions, audit=audit)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(render(both_channels()), encoding="utf-8")
    print(folder / "index.html")
