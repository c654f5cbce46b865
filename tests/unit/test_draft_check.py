"""Drafting and `check`: what a new study holds, and every finding that stands in the way of a seal."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.convert import read_authored
from prereg.codec.study_files import AUTHORED, BLANK, cross_references, parse_study
from prereg.draft.family import build_events, family
from prereg.draft.lint import CheckReport, check_study
from prereg.draft.scaffold import FIRST_SEED, Blanks, draft_study
from prereg.errors import EngineFailed, UsageError, WrongState
from prereg.model.law import (
    Crashed,
    Decoded,
    Events,
    Mass,
    MechanismLaw,
    RecordEntry,
    ReferenceEntry,
    SetEvent,
)
from prereg.store.layout import StudyPaths
from prereg.store.seeds import repository_spans

FILLED = Blanks(title="A title", question="A question?", author="Ada", principal="ada@example.org")
RATES = {"plain": {"reference": 50.0, "test": 50.0}}


def drafted(tmp_path: Path, name: str = "mine", blanks: Blanks = FILLED) -> StudyPaths:
    studies = tmp_path / "studies"
    taken = repository_spans(studies) if studies.is_dir() else []
    return draft_study(studies / name, "two-arm", blanks, taken)


def check(paths: StudyPaths) -> CheckReport:
    return check_study(paths, rates=RATES, harness_sha256="0" * 64)


def edit(paths: StudyPaths, name: str, change: Callable[[Any], object]) -> None:
    path = paths.root / name
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_filled_draft_may_be_sealed(tmp_path: Path) -> None:
    report = check(drafted(tmp_path))
    assert report.ok, report.findings
    assert sum(s.alpha for s in report.spent) == pytest.approx(0.05)
    assert {c.draws for c in report.cost} == {8000}
    assert report.core_seconds == pytest.approx(4 * 40 / 50)


def test_every_blank_is_named_with_its_line(tmp_path: Path) -> None:
    paths = drafted(tmp_path, blanks=Blanks())
    report = check(paths)
    assert not report.ok
    lines = paths.protocol.read_text().splitlines()
    places = {f.where for f in report.findings if f.what == "a blank to fill"}
    wanted = {f"protocol.json:{i}" for i, x in enumerate(lines, 1) if BLANK in x or "fill-principal" in x}
    assert places == wanted
    assert len(wanted) == 4


def test_a_second_draft_gets_other_seeds(tmp_path: Path) -> None:
    first, second = drafted(tmp_path, "one"), drafted(tmp_path, "two")
    a = json.loads((first.root / "seeds.json").read_text())["blocks"]
    b = json.loads((second.root / "seeds.json").read_text())["blocks"]
    assert int(a[0]["first"]) == FIRST_SEED
    assert int(b[0]["first"]) >= int(a[-1]["end"])
    assert check(first).ok and check(second).ok


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    drafted(tmp_path)
    with pytest.raises(WrongState, match="exists"):
        drafted(tmp_path)


@pytest.mark.parametrize("name", ["Mine", "a b", "-x", "ü", "x" * 65, ".hidden"])
def test_a_name_that_is_no_id_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a study"):
        draft_study(tmp_path / name, "two-arm", FILLED, [])


def test_an_unknown_template_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no template"):
        draft_study(tmp_path / "x", "three-arm", FILLED, [])


FAULTS: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "unknown property": ("protocol.json", lambda v: v.update(colour=1), "unexpected"),
    "another study's name": ("protocol.json", lambda v: v.update(study="other"), "belongs to study"),
    "draws that rows do not divide": (
        "protocol.json",
        lambda v: v["sampling"]["fixed"].update(draws=8001),
        "not a multiple",
    ),
    "an arm twice": ("protocol.json", lambda v: v["arms"][1].update(id="fixed"), "stands twice"),
    "two reference arms": ("protocol.json", lambda v: v["arms"][1].update(role="reference"), "one arm must"),
    "sampling of no arm": (
        "protocol.json",
        lambda v: v["sampling"].update(x=v["sampling"]["fixed"]),
        "exactly the arms",
    ),
    "a predicate that is not there": (
        "protocol.json",
        lambda v: v["configurations"][0].update(predicates=["p"]),
        "no predicate",
    ),
    "a configuration in no stage": (
        "protocol.json",
        lambda v: v["stages"][0].update(configurations=["naive"]),
        "stands in no stage",
    ),
    "no command": ("protocol.json", lambda v: v["configurations"][0].update(command=None), "needs a command"),
    "an allowance without a calibration": (
        "protocol.json",
        lambda v: v["decision"].update(calibration_allowance=0.005),
        "no calibration",
    ),
    "channel S without a reference": (
        "protocol.json",
        lambda v: v["decision"].update(rule="channel-S", calibration_allowance=0.005),
        "reference",
    ),
    "a block that is too short": (
        "seeds.json",
        lambda v: v["blocks"][0].update(end=str(FIRST_SEED + 1)),
        "needs 40",
    ),
    "a block of no unit": ("seeds.json", lambda v: v["blocks"][0].update(unit="s1.x.fixed"), "no unit"),
    "a block of another role": (
        "seeds.json",
        lambda v: v["blocks"][0].update(role="pilot"),
        "its role is pilot",
    ),
    "two blocks that overlap": (
        "seeds.json",
        lambda v: v["blocks"][1].update(first=v["blocks"][0]["first"], end=v["blocks"][0]["end"]),
        "share the seeds",
    ),
    "events of no configuration": (
        "events.json",
        lambda v: v["configurations"].update(x=v["configurations"]["naive"]),
        "exactly the protocol",
    ),
    "an event twice": (
        "events.json",
        lambda v: v["configurations"]["naive"]["events"][1].update(id="significant"),
        "stands twice",
    ),
    "a prediction of no configuration": (
        "predictions.json",
        lambda v: v["predictions"][0]["claim"].update(configuration="x"),
        "no configuration",
    ),
    "a verdict that the rule never gives": (
        "predictions.json",
        lambda v: v["predictions"][0]["claim"].update({"in": ["FAILS"]}),
        "never says FAILS",
    ),
    "no prediction": ("predictions.json", lambda v: v["predictions"].clear(), "no prediction"),
    "too few draws to ever reject": (
        "protocol.json",
        lambda v: [s.update(draws=2, rows=1, shard_requests=1) for s in v["sampling"].values()],
        "needs 2",
    ),
}


def ends_at(value: Any, end: int) -> None:
    value["blocks"][0].update(first=str(end - 40), end=str(end))


def test_the_last_seed_may_be_reserved(tmp_path: Path) -> None:
    paths = drafted(tmp_path)
    edit(paths, "seeds.json", lambda v: ends_at(v, 2**64))
    report = check(paths)
    assert report.ok, report.findings
    edit(paths, "seeds.json", lambda v: ends_at(v, 2**64 + 1))
    assert any("ends past 2^64" in f.what for f in check(paths).findings)


def event_problems(paths: StudyPaths, change: Callable[[Any], object]) -> list[UsageError]:
    """Everything that is wrong with a study once its events.json is changed."""
    study = parse_study({name: (paths.root / name).read_bytes() for name in AUTHORED})
    value = json.loads((paths.root / "events.json").read_text())
    change(value)
    events = read_authored(json.dumps(value).encode(), "events", Events, where="events.json")
    return list(cross_references(dataclasses.replace(study, events=events)))


def test_a_reference_names_an_outcome_once(tmp_path: Path) -> None:
    paths = drafted(tmp_path)
    law: list[Any] = [{"outcome": {"value": v}, "p": 0.2} for v in (1, True, "1", 2, False)]

    def put(value: Any) -> None:
        value["configurations"]["naive"]["reference"] = law

    said = "stands twice in the reference"
    assert not any(said in e.what for e in event_problems(paths, put))
    law[3]["outcome"] = {"value": 1.0}
    (found,) = [e for e in event_problems(paths, put) if said in e.what]
    assert found.where == "events.json#/configurations/naive/reference/3/outcome"


@pytest.mark.parametrize("law", [None, [{"outcome": {"value": 1}, "p": 1}]])
@pytest.mark.parametrize("harness", [None, "0" * 64])
def test_a_harness_is_named_exactly_if_there_is_a_reference(
    tmp_path: Path, law: Any, harness: str | None
) -> None:
    def put(value: Any) -> None:
        value["harness_sha256"] = harness
        value["configurations"]["naive"]["reference"] = law

    found = [e for e in event_problems(drafted(tmp_path), put) if e.where == "events.json#/harness_sha256"]
    assert len(found) == ((law is None) != (harness is None))


@pytest.mark.parametrize("name", FAULTS)
def test_check_finds(name: str, tmp_path: Path) -> None:
    file, change, said = FAULTS[name]
    paths = drafted(tmp_path)
    edit(paths, file, change)
    report = check(paths)
    assert not report.ok
    assert any(said in f.what for f in report.findings), [f.what for f in report.findings]
    assert all(f.where for f in report.findings)


@pytest.mark.parametrize(
    "file", ["protocol.json", "seeds.json", "events.json", "predicates.json", "predictions.json"]
)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a":1,"a":2}', b"[" * 100])
def test_check_survives_junk(tmp_path: Path, file: str, data: bytes) -> None:
    paths = drafted(tmp_path)
    (paths.root / file).write_bytes(data)
    report = check(paths)
    assert not report.ok
    assert any(file in f.where for f in report.findings), report.findings


@pytest.mark.parametrize(
    "file", ["protocol.json", "seeds.json", "events.json", "predicates.json", "predictions.json"]
)
def test_check_names_a_missing_file(tmp_path: Path, file: str) -> None:
    paths = drafted(tmp_path)
    (paths.root / file).unlink()
    report = check(paths)
    assert not report.ok
    assert any(f.where == file and "missing" in f.what for f in report.findings)


def test_no_rejection_possible_is_an_error(tmp_path: Path) -> None:
    paths = drafted(tmp_path)
    edit(
        paths,
        "protocol.json",
        lambda v: [s.update(draws=2, rows=1, shard_requests=1) for s in v["sampling"].values()],
    )

    def shorten(value: Any) -> None:
        for i, block in enumerate(value["blocks"]):
            block.update(first=str(FIRST_SEED + 10 * i), end=str(FIRST_SEED + 10 * i + 2))

    edit(paths, "seeds.json", shorten)
    assert any("no data could reject" in f.what for f in check(paths).findings)


def test_seeds_of_a_sibling_are_found_at_both_widths(tmp_path: Path) -> None:
    one, two = drafted(tmp_path, "one"), drafted(tmp_path, "two")
    blocks = json.loads((one.root / "seeds.json").read_text())["blocks"]
    for shift, said in ((0, "share the seeds"), (2**32, "low 32 bits")):

        def move(value: Any, shift: int = shift) -> None:
            for mine, theirs in zip(value["blocks"], blocks, strict=True):
                mine.update(first=str(int(theirs["first"]) + shift), end=str(int(theirs["end"]) + shift))

        edit(two, "seeds.json", move)
        found = [f.what for f in check(two).findings if "share the seeds" in f.what]
        assert len(found) == 4 and all(said in what and "one" in what and "two" in what for what in found)


def law() -> list[Mass]:
    return [
        Mass(outcome=Decoded(tokens=(1,), finish="eos"), p=0.25),
        Mass(outcome=Decoded(tokens=(0, 0), finish="length"), p=0.25),
        Mass(outcome=Decoded(tokens=(0, 1), finish="eos"), p=0.5),
    ]


def mechanism() -> MechanismLaw:
    return MechanismLaw(
        id="H-X1",
        switch=0,
        law=(
            Mass(outcome=Decoded(tokens=(1, 1), finish="eos"), p=0.125),
            Mass(outcome=Decoded(tokens=(0, 0), finish="length"), p=0.25),
            Mass(outcome=Decoded(tokens=(0, 1), finish="eos"), p=0.5),
            Mass(outcome=Crashed(crash="ValueError"), p=0.125),
        ),
    )


def test_the_family_holds_every_kind() -> None:
    replayed = (ReferenceEntry(prefix=(), entry=RecordEntry(tokens=(0, 1), values=(0.5, "-inf"))),)
    made = family(law(), horizon=2, mechanism=mechanism(), records=replayed)
    ids = [e.id for e in made.events]
    assert ids == [
        "o-0-1_eos", "o-1-1_eos", "o-1_eos", "o-0-0_length", "other",
        "prefix-0", "prefix-1", "prefix-0-0", "prefix-0-1", "prefix-1-1",
        "length-0", "length-1", "length-2", "longer-than-2", "finish-eos", "finish-length",
        "crash", "violation", "a-h-x1",
    ]  # fmt: skip
    # Crashes are in no set, and neither is what the mechanism leaves as it is.
    assert made.events[-1] == SetEvent(
        id="a-h-x1", outcomes=(Decoded(tokens=(1, 1), finish="eos"),), hypothesis="H-X1"
    )
    assert (made.reference, made.hypothesis, made.records) == (tuple(law()), mechanism(), replayed)


def test_a_mechanism_that_adds_nothing_to_any_outcome_has_no_event() -> None:
    as_it_is = MechanismLaw(id="H-X1", switch=0, law=tuple(law()))
    made = family(law(), horizon=2, mechanism=as_it_is)
    assert made.events == family(law(), horizon=2).events
    assert made.hypothesis == as_it_is


def test_a_law_that_does_not_sum_to_one_is_refused(tmp_path: Path) -> None:
    from prereg.model.study import Protocol

    paths = draft_study(tmp_path / "c", "conformance", FILLED, [])
    protocol = read_authored(paths.protocol.read_bytes(), "protocol", Protocol, where="protocol.json")
    laws = {c.id: law() for c in protocol.configurations}
    assert build_events(protocol, laws, "0" * 64).harness_sha256 == "0" * 64
    laws["plain"] = laws["plain"][1:]
    with pytest.raises(EngineFailed, match=r"plain sums to 0\.75"):
        build_events(protocol, laws, "0" * 64)
    laws["plain"] = law()
    short = {"plain": MechanismLaw(id="H-X1", switch=0, law=mechanism().law[1:])}
    with pytest.raises(EngineFailed, match=r"under its hypothesis of plain sums to 0\.875"):
        build_events(protocol, laws, "0" * 64, mechanisms=short)
