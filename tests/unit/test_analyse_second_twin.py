"""Records beside the tokens and registered mechanisms against their slow twin, on random draws and laws."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from second_fixture import second_study
from second_twin import Draw, compatible_slowly, records_slowly

from bench.synthetic import SEAL
from bench.trees import leaf, unit_tree
from prereg.analyse.decide import decide
from prereg.analyse.laws import arm_law
from prereg.analyse.mechanism import tv_to
from prereg.analyse.tally import Tally, tally
from prereg.codec.canonical import dump_file
from prereg.codec.convert import read_machine, to_json
from prereg.model.law import Crashed, Decoded, Mass, Outcome, RecordEntry, RecordValue, ReferenceEntry
from prereg.model.record import Counters, Record
from prereg.model.study import Study
from prereg.model.verdict import Decisions
from prereg.seal.agree import differences

OUTCOMES: tuple[Outcome, ...] = (
    *(Decoded(tokens=t, finish="length") for n in range(4) for t in itertools.product((0, 1), repeat=n)),
    Crashed(crash="KeyError"),
)
PAIRS = tuple(o for o in OUTCOMES if isinstance(o, Decoded) and len(o.tokens) == 2)
VALUES: tuple[RecordValue, ...] = (0, -0.5, -0.5005, -0.501, -0.502, -1.0, "-inf", "inf", "nan")
WALKED = ("walked.other.off", "walked.other.on", "walked.same.off", "walked.same.on")


@functools.cache
def base() -> Study:
    return second_study()


entry_values = st.dictionaries(st.integers(0, 2), st.sampled_from(VALUES), max_size=3)
entries = entry_values.map(
    lambda v: RecordEntry(tokens=tuple(sorted(v)), values=tuple(v[t] for t in sorted(v)))
)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """The study of the fixture with another reference of records, another mechanism and other draws."""
    study = base()
    same = study.protocol.configuration("same")
    assert same.records is not None
    plan = replace(
        same.records,
        told=draw(st.integers(1, 2)),
        tolerance=draw(st.sampled_from([0.001, 0.0005, 1.0])),
        reference=draw(st.sampled_from(["replay", "replay", "none"])),
    )
    prefixes = draw(st.sets(st.sampled_from([(0,), (1,), (0, 1)])))
    reference = tuple(ReferenceEntry(prefix=p, entry=draw(entries)) for p in ((), *sorted(prefixes)))
    weights = draw(st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(any))
    law = tuple(
        Mass(outcome=o, p=w / sum(weights)) for o, w in zip((*PAIRS, OUTCOMES[-1]), weights, strict=True)
    )
    family = study.events.configurations["same"]
    assert family.hypothesis is not None
    families = {
        **study.events.configurations,
        "same": replace(
            family,
            hypothesis=replace(family.hypothesis, law=law),
            records=None if plan.reference == "none" else reference,
        ),
    }
    protocol = replace(
        study.protocol,
        configurations=(replace(same, records=plan), study.protocol.configuration("other")),
        decision=replace(study.protocol.decision, calibration_allowance=draw(st.sampled_from([0.0, 1.0]))),
    )
    return replace(study, protocol=protocol, events=replace(study.events, configurations=families))


def without(entry: RecordEntry, at: int) -> RecordEntry:
    return RecordEntry(
        tokens=entry.tokens[:at] + entry.tokens[at + 1 :], values=entry.values[:at] + entry.values[at + 1 :]
    )


@st.composite
def drawn(draw: st.DrawFn, study: Study) -> list[Draw]:
    """Draws of one arm; half of them with the records that the reference has."""
    rows = {r.prefix: r.entry for r in study.events.configurations["same"].records or ()}
    found: list[Draw] = []
    for outcome in draw(st.lists(st.sampled_from((*PAIRS, *OUTCOMES)), min_size=1, max_size=6)):
        told: tuple[RecordEntry, ...] = ()
        if isinstance(outcome, Decoded):
            known = [
                rows[outcome.tokens[:i]] for i in range(len(outcome.tokens)) if outcome.tokens[:i] in rows
            ]
            kind = draw(st.sampled_from(["as told", "one left out", "any"]))
            if kind == "one left out":
                known = [without(entry, draw(st.integers(0, 2))) for entry in known]
            told = tuple(known if kind != "any" else draw(st.lists(entries, max_size=4)))
        found += [(outcome, told)] * draw(st.sampled_from([1, 2, 30]))
    return found


def tallied(unit: str, draws: list[Draw], proposals: int) -> Tally:
    return tally(
        unit,
        (
            Record(
                seal=SEAL, unit=unit, shard=0, attempt=1, draw=i, seed=str(i), row=0, outcome=outcome,
                counters=Counters(proposals=proposals, verifications=proposals * (i % 2), accepted=0),
                record=told,
            )
            for i, (outcome, told) in enumerate(draws)
        ),
    )  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_the_draws_say_is_what_the_page_says(data: st.DataObject) -> None:
    study = data.draw(studies())
    off, on = data.draw(drawn(study)), data.draw(drawn(study))
    proposals = data.draw(st.integers(0, 1))
    lost = data.draw(st.sampled_from([(), (), (), ("drawn.same.off",), ("drawn.same.on",)]))
    sampling = {
        arm: replace(study.protocol.sampling[arm], draws=len(draws), rows=1)
        for arm, draws in (("off", off), ("on", on))
    }
    study = replace(study, protocol=replace(study.protocol, sampling=sampling))
    tallies = {
        "drawn.same.off": tallied("drawn.same.off", off, 0),
        "drawn.same.on": tallied("drawn.same.on", on, proposals),
    }
    decisions = decide(study, SEAL, tallies, {*lost, *WALKED})
    (found,) = decisions.configurations
    is_on, is_off = "drawn.same.on" not in lost, "drawn.same.off" not in lost
    slow_records = records_slowly(
        study, "same", off if is_off else None, on if is_on else None, proposals, found.verdict
    )
    assert differences(to_json(found.records), slow_records) == []
    slow = compatible_slowly(study, "same", [o for o, _ in on] if is_on else None, found.verdict)
    assert differences(to_json(found.hypothesis), slow) == []
    assert to_json(found)["exposed"] == (len(on) // 2 * proposals if is_on else None)
    data_bytes = dump_file(to_json(decisions))
    assert read_machine(data_bytes, "decisions", Decisions, where="x") == decisions


@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any),
    st.sampled_from([0.0, 0.25]),
)
def test_a_tree_and_a_law(tree: list[int], law: list[int], left: float) -> None:
    """The interval holds the distance for every way in which what is open may fall."""
    total = sum(tree)
    leaves = [leaf((i,), (w / total * (1 - left),), PAIRS[i]) for i, w in enumerate(tree) if w]
    on = arm_law(unit_tree(leaves, unexplored=left))
    outcomes = (*PAIRS, OUTCOMES[-1])
    p = {o: w / sum(law) for o, w in zip(outcomes, law, strict=True)}
    masses = tuple(Mass(outcome=o, p=q) for o, q in p.items())
    low, high = tv_to(masses, on)
    assert 0 <= low <= high + 1e-12
    for extra in (*outcomes, Decoded(tokens=(9,), finish=None)):
        whole = {o: on.mass.get(o, 0.0) + (on.slack if o == extra else 0.0) for o in {*p, *on.mass, extra}}
        far = math.fsum(abs(p.get(o, 0.0) - q) for o, q in whole.items()) / 2
        assert low - 1e-12 <= far <= high + 1e-12


@given(st.lists(st.integers(1, 5), min_size=4, max_size=4))
def test_a_whole_tree_is_as_far_as_it_is(tree: list[int]) -> None:
    leaves = [leaf((i,), (w / sum(tree),), PAIRS[i]) for i, w in enumerate(tree)]
    on = arm_law(unit_tree(leaves))
    law = [Mass(outcome=o, p=0.25) for o in PAIRS]
    far = sum(abs(w / sum(tree) - 0.25) for w in tree) / 2
    low, high = tv_to(law, on)
    assert math.isclose(low, far, abs_tol=1e-12) and math.isclose(high, far, abs_tol=1e-12)
