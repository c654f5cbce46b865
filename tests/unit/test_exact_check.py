"""`check` and `draft` of a study with an exact stage: cost, alpha, reachable verdicts, the premise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exact_fixture import exact_files, exact_protocol
from scipy import stats

from prereg.codec.convert import read_authored
from prereg.codec.study_files import parse_study
from prereg.collect.cost import cost_of, leaves_of
from prereg.collect.progress import Cost, Meter
from prereg.collect.runtime import load_build
from prereg.draft.family import build_events, events_json
from prereg.draft.lint import CheckReport, check_study
from prereg.draft.scaffold import Blanks, draft_study
from prereg.model.law import Decoded, Family, Mass
from prereg.model.plan import plan
from prereg.model.study import ExactPlan, Protocol, Study
from prereg.stats.premise import premise_power
from prereg.stats.trees import CHECK_RUNS, expected_runs, hidden_mass, needed_runs
from prereg.store.layout import StudyPaths

RATES = {"plain": {"reference": 10.0, "test": 50.0}}
HARNESS = "0" * 64
Change = Callable[[dict[str, Any]], object]


def written(
    tmp_path: Path,
    change: Change = lambda p: None,
    files: Callable[[dict[str, Any]], object] = lambda f: None,
) -> StudyPaths:
    protocol = exact_protocol()
    change(protocol)
    values = exact_files(protocol)
    values["events.json"]["harness_sha256"] = HARNESS
    files(values)
    root = tmp_path / "studies" / "tree"
    root.mkdir(parents=True)
    for name, value in values.items():
        (root / name).write_text(json.dumps(value))
    return StudyPaths(root=root)


def checked(tmp_path: Path, change: Change = lambda p: None, **more: Any) -> CheckReport:
    return check_study(written(tmp_path, change, **more), rates=RATES, harness_sha256=HARNESS)


def said(report: CheckReport, severity: str) -> list[str]:
    return [f"{f.where}: {f.what}" for f in report.findings if f.severity == severity]


def parsed() -> Study:
    values = exact_files(exact_protocol())
    return parse_study({name: json.dumps(value).encode() for name, value in values.items()})


def test_a_sound_study_may_be_sealed(tmp_path: Path) -> None:
    report = checked(tmp_path)
    assert report.ok, report.findings
    assert [s.configuration for s in report.spent] == ["same"]
    assert report.spent[0].level == pytest.approx(0.05 / 16)
    assert {r.configuration for r in report.power} == {"same"} == {r.configuration for r in report.reach}
    assert {(r.arm, r.draws) for r in report.premise} == {("off", 400), ("on", 400)}
    assert report.premise[0].level == pytest.approx(0.05 / 16)


def test_the_cost_of_a_tree_is_its_runs_at_the_test_arms_rate(tmp_path: Path) -> None:
    report = checked(tmp_path)
    rows = [c for c in report.cost if c.channel == "exact"]
    assert [(c.configuration, c.arm) for c in rows] == [
        (name, arm) for name in ("other", "same") for arm in ("off", "on")
    ]
    runs = 2 + CHECK_RUNS  # two first tokens, each with a last one that is told from its row
    assert {(c.requests, c.draws, c.core_seconds) for c in rows} == {(runs, 0, runs / 50)}
    drawn = {(c.arm, c.requests, c.core_seconds) for c in report.cost if c.channel == "draws"}
    assert drawn == {("off", 4, 0.4), ("on", 400, 8.0)}


def outcomes(*lists: tuple[int, ...]) -> Family:
    law = tuple(Mass(outcome=Decoded(tokens=t, finish=None), p=1 / len(lists)) for t in lists)
    return Family(reference=law, events=())


def exact_plan(**changes: Any) -> ExactPlan:
    settings = {
        "tolerance": 1e-5,
        "runs": None,
        "mass": 0.0,
        "close_last": True,
        "close_floor": 0.0,
        "premise_alpha": None,
    }
    return ExactPlan(**{**settings, **changes})


def test_expected_runs() -> None:
    family = outcomes((0, 0), (0, 1), (1, 0), (1, 1), (1, 2))
    assert expected_runs(exact_plan(), family) == 2 + CHECK_RUNS
    assert expected_runs(exact_plan(close_last=False), family) == 5 + CHECK_RUNS
    assert expected_runs(exact_plan(close_last=False, runs=3), family) == 3 + CHECK_RUNS
    unknown = Family(reference=None, events=())
    assert expected_runs(exact_plan(), unknown) is None
    assert expected_runs(exact_plan(runs=3), unknown) == 3 + CHECK_RUNS


def test_a_walk_that_nothing_bounds_is_said(tmp_path: Path) -> None:
    def without(files: dict[str, Any]) -> None:
        families = files["events.json"]["configurations"]
        families["other"] = {**families["other"], "reference": None}

    report = checked(tmp_path, files=without)
    assert report.ok
    assert any("how large its tree is nobody knows" in text for text in said(report, "warning"))
    assert report.core_seconds is None


def test_needed_runs_and_hidden_mass() -> None:
    reference = tuple(
        Mass(outcome=Decoded(tokens=t, finish=None), p=p)
        for t, p in (((0, 0), 0.5), ((0, 1), 0.2), ((1, 0), 0.2), ((2, 0), 0.06), ((3, 0), 0.04))
    )
    assert needed_runs(exact_plan(), reference) == 4
    assert needed_runs(exact_plan(close_last=False), reference) == 5
    assert needed_runs(exact_plan(mass=0.05), reference) == 3
    assert needed_runs(exact_plan(mass=0.35), reference) == 1
    assert hidden_mass(exact_plan(), reference) == 0
    assert hidden_mass(exact_plan(close_floor=0.06), reference) == 0.04
    assert hidden_mass(exact_plan(close_floor=0.07), reference) == pytest.approx(0.1)


@pytest.mark.parametrize(("runs", "expected"), [(1, 2), (2, 0), (None, 0)])
def test_runs_below_the_size_of_the_tree_are_said(tmp_path: Path, runs: int | None, expected: int) -> None:
    report = checked(tmp_path, lambda p: p["exact"].update(runs=runs))
    assert report.ok
    assert (
        sum(" runs are too few for a tree of about 2" in text for text in said(report, "warning")) == expected
    )


# The lightest outcome of the reference weighs 1/8, and a floor leaves what is lighter than itself.
@pytest.mark.parametrize(("floor", "expected"), [(0.125, 0), (0.126, 2), (0, 0)])
def test_a_floor_that_hides_more_than_the_tolerance_is_said(
    tmp_path: Path, floor: float, expected: int
) -> None:
    report = checked(tmp_path, lambda p: p["exact"].update(close_floor=floor))
    assert report.ok
    found = [t for t in said(report, "warning") if "weigh 0.25 of the reference law, above" in t]
    assert [t.split(": ")[0] for t in found] == ["protocol.json#/exact/close_floor"] * expected


def test_an_off_arm_that_nothing_calibrates_is_said(tmp_path: Path) -> None:
    def without(files: dict[str, Any]) -> None:
        families = files["events.json"]["configurations"]
        families["other"] = {**families["other"], "reference": None}

    found = [t for t in said(checked(tmp_path, files=without), "warning") if "uncalibrated" in t]
    assert [t.split(": ")[0] for t in found] == ["events.json#/configurations/other/reference"]
    assert not any("uncalibrated" in t for t in said(checked(tmp_path / "with"), "warning"))


def test_a_walk_longer_than_its_ceiling_is_said(tmp_path: Path) -> None:
    report = checked(tmp_path, lambda p: p["ceilings"].update(unit_seconds=2))
    assert sum("above the ceiling of 2 s" in text for text in said(report, "warning")) == 4


def test_an_arm_that_proposes_nothing_is_an_error(tmp_path: Path) -> None:
    report = checked(tmp_path, lambda p: p["arms"][1].update(speculation=False))
    assert any("could only be INCONCLUSIVE" in text for text in said(report, "error"))


def test_a_mass_above_the_tolerance_is_said(tmp_path: Path) -> None:
    report = checked(tmp_path, lambda p: p["exact"].update(mass=0.01))
    assert any("EQUAL_WITHIN_TOLERANCE could not be reached" in text for text in said(report, "warning"))


def test_laws_of_another_harness_are_an_error_for_an_exact_stage_alone(tmp_path: Path) -> None:
    def alone(p: dict[str, Any]) -> None:
        p["stages"] = p["stages"][1:]
        p["sampling"] = {}
        p["decision"] = {"rule": "exact", "threshold": 0, "calibration_allowance": None}
        p["exact"]["premise_alpha"] = None

    def stale(files: dict[str, Any]) -> None:
        files["events.json"]["harness_sha256"] = "1" * 64
        files["predictions.json"]["predictions"].pop()

    report = checked(tmp_path, alone, files=stale)
    assert any("another harness" in text for text in said(report, "error"))
    assert (report.spent, report.power, report.reach, report.premise) == ((), (), (), ())


def test_a_premise_that_no_draws_could_fail_is_an_error(tmp_path: Path) -> None:
    def certain(files: dict[str, Any]) -> None:
        for family in files["events.json"]["configurations"].values():
            family["events"] = [{"id": "any", "kind": "length", "equals": 2}]

    report = checked(tmp_path, files=certain)
    assert sum("no 400 draws could fail the premise" in text for text in said(report, "error")) == 2


def test_a_premise_that_is_hardly_seen_is_said(tmp_path: Path) -> None:
    report = checked(tmp_path, lambda p: p["power"].update(gap=0.02, target=0.9))
    assert any("would fail the premise with probability" in text for text in said(report, "warning"))


def test_premise_power_is_the_binomial_sum() -> None:
    n, level, mass, gap = 400, 0.003, 0.25, 0.1
    # L of k exceeds the mass exactly if so many or more would be rarer than the level at that mass.
    power = sum(
        stats.binom.pmf(k, n, mass + gap) for k in range(n + 1) if stats.binom.sf(k - 1, n, mass) < level
    )
    assert premise_power(n, level, mass, gap) == pytest.approx(power, abs=1e-12)


def test_the_cost_of_a_collection_counts_trees_apart() -> None:
    study = parsed()
    shards = plan(study.protocol, study.seeds)
    builds = {"plain": load_build("plain")}
    cost = cost_of(study, shards, builds, 1)
    assert (cost.draws, cost.requests, cost.trees, cost.runs) == (800, 404, 4, 4 * (2 + CHECK_RUNS))
    assert "800 draws in 404 requests, 4 trees of choices in about 424 runs" in str(cost)
    assert leaves_of(study, shards[-1]) == 4
    alone = cost_of(study, [s for s in shards if s.channel == "exact"], builds, 1)
    assert str(alone).startswith("4 trees of choices")
    assert "not known before" in str(Cost(draws=0, requests=0, seconds=None, trees=1, runs=None))


def test_the_meter_counts_leaves_apart() -> None:
    now = [0.0]
    meter = Meter(lambda: now[0])
    meter.begin(100, 0, work=40.0)
    now[0] = 10.0
    meter.advance(50, 5.0)
    meter.advance(0, 5.0, leaves=200)
    assert meter.line() == "50/100 draws (50 %), 5 a second, 200 leaves, 20 a second, 30 s left"
    meter.begin(0, 0)
    now[0] = 12.0
    meter.advance(0, leaves=8)
    assert meter.line() == "8 leaves, 4 a second"


def test_the_template_passes_once_its_blanks_are_filled(tmp_path: Path) -> None:
    blanks = Blanks(title="T", question="Q?", author="Ada", principal="ada@example.org")
    paths = draft_study(tmp_path / "studies" / "mine", "exact", blanks, [])
    protocol = read_authored(paths.protocol.read_bytes(), "protocol", Protocol, where="protocol.json")
    law = [Mass(outcome=Decoded(tokens=(i, j), finish="length"), p=0.25) for i in (0, 1) for j in (0, 1)]
    laws = {c.id: law for c in protocol.configurations}
    paths.events.write_text(json.dumps(events_json(build_events(protocol, laws, HARNESS))))
    report = check_study(paths, rates={}, harness_sha256=HARNESS)
    assert report.ok, report.findings
    assert protocol.template == "exact"
    assert [c.id for c in protocol.drawn()] == ["plain", "guidance"]
    assert len(protocol.walked()) == 4 and protocol.exact is not None and protocol.exact.full
    predictions = json.loads((paths.root / "predictions.json").read_bytes())["predictions"]
    assert {p["claim"].get("channel", "draws") for p in predictions} == {"draws", "exact"}


def test_a_blank_template_names_its_blanks(tmp_path: Path) -> None:
    paths = draft_study(tmp_path / "studies" / "mine", "exact", Blanks(), [])
    report = check_study(paths, rates={}, harness_sha256=HARNESS)
    assert sum(f.what == "a blank to fill" for f in report.findings) == 4
