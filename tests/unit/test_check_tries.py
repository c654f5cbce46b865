"""What `check` says of attempts and ceilings of edition 3, and of what no estimate covers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from second_fixture import second_study
from test_analyse_tries import third_study

from prereg.cli import check as verb
from prereg.cli.check import as_value, doing, show
from prereg.cli.seeds import plan_seeds
from prereg.collect import rehearse
from prereg.collect.rehearse import Rehearsal
from prereg.draft.lint import CheckReport, check_study
from prereg.draft.scaffold import Blanks, draft_study
from prereg.draft.startup import Startup, startup_of
from prereg.model.study import Study
from prereg.stats.power import reach_table
from prereg.store.layout import StudyPaths

RATES = {"plain": {"reference": 50.0, "test": 50.0}}


def edit(paths: StudyPaths, change: Callable[[dict[str, Any]], object], name: str = "protocol.json") -> None:
    value = json.loads((paths.root / name).read_bytes())
    change(value)
    (paths.root / name).write_text(json.dumps(value))


def drafted(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> StudyPaths:
    blanks = Blanks(title="T", question="Q?", author="Ada", principal="ada@example.org")
    paths = draft_study(tmp_path / "studies" / "mine", "two-arm", blanks, [])
    edit(paths, lambda protocol: protocol.update(edition=3))
    edit(paths, change)
    return paths


def checked(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> CheckReport:
    return check_study(drafted(tmp_path, change), rates=RATES, harness_sha256="0" * 64)


def said(report: CheckReport) -> list[tuple[str, str, str]]:
    return [(f.severity, f.where, f.what) for f in report.findings]


def test_attempts_and_ceilings_are_explained_and_forbid_nothing(tmp_path: Path) -> None:
    def change(protocol: dict[str, Any]) -> None:
        protocol["attempts"] = 3
        protocol["ceilings"]["on_ceiling"] = "INCONCLUSIVE"

    report = checked(tmp_path, change)
    assert report.ok
    (again, left), power = said(report)[-2:], report.power
    assert again[:2] == ("note", "protocol.json#/attempts")
    assert "on the same seeds, 3 times in all" in again[2]
    assert left[:2] == ("note", "protocol.json#/ceilings/on_ceiling")
    assert "one that names INCONCLUSIVE does not count it" in left[2]
    plain = checked(tmp_path / "plain", lambda protocol: None)
    assert plain.power == power and plain.spent == report.spent
    assert not [f for f in plain.findings if f.severity == "note"]
    assert {r.inconclusive for r in plain.reach} == {()}
    assert {r.inconclusive for r in report.reach} == {("ceiling",)}


def test_confirmation_is_tried_once(tmp_path: Path) -> None:
    def change(protocol: dict[str, Any]) -> None:
        protocol["attempts"] = 2
        protocol["stages"][0]["purpose"] = "confirmation"

    paths = drafted(tmp_path, change)
    edit(paths, lambda seeds: [b.update(role="confirmation") for b in seeds["blocks"]], "seeds.json")
    report = check_study(paths, rates=RATES, harness_sha256="0" * 64)
    assert not report.ok
    (finding,) = report.findings
    assert finding.where == "protocol.json#/attempts" and "confirms" in finding.what
    edit(paths, lambda protocol: protocol.update(attempts=1))
    assert check_study(paths, rates=RATES, harness_sha256="0" * 64).ok


@pytest.mark.parametrize("word", ["INVALID", "INCONCLUSIVE"])
def test_a_unit_that_its_ceiling_would_take_is_named(tmp_path: Path, word: str) -> None:
    def change(protocol: dict[str, Any]) -> None:
        protocol["ceilings"] |= {"on_ceiling": word, "unit_seconds": 1}
        # 8,000 draws of one row each are 8,000 requests, at 50 a second.
        protocol["sampling"]["peeking"] |= {"rows": 1}

    paths = drafted(tmp_path, change)
    rates = {"plain": {"reference": 50.0, "test": 5000.0}}

    def found() -> list[tuple[str, str, str]]:
        report = check_study(paths, rates=rates, harness_sha256="0" * 64)
        return [f for f in said(report) if f[0] == "warning" and f[1].endswith("unit_seconds")]

    plan_seeds(paths.root)
    assert [f[2] for f in found()] == [
        f"{name}, peeking: about 2 s of one core, above the ceiling of 1 s: the configuration would be {word}"
        for name in ("pocock", "naive")
    ]
    edit(paths, lambda protocol: protocol["ceilings"].update(unit_seconds=2))
    assert not found()
    edit(paths, lambda protocol: (protocol.update(edition=2), protocol["ceilings"].update(unit_seconds=1)))
    if word == "INVALID":
        assert not found()


@pytest.mark.parametrize(
    ("study", "by"),
    [
        (second_study(), ("nothing-proposed",)),
        (third_study("INVALID"), ("nothing-proposed",)),
        (third_study(), ("nothing-proposed", "ceiling")),
    ],
)
def test_by_what_inconclusive_is_reached(study: Study, by: tuple[str, ...]) -> None:
    assert [r.inconclusive for r in reach_table(study)] == [by]


def test_what_a_rehearsal_does_is_counted() -> None:
    found = startup_of(third_study())
    assert found == Startup(builds=1, configurations=2, requests=2, walks=4, observed=2)
    assert doing(found) == (
        "1 worker started, 2 configurations opened, 2 arms tried by a request each, 4 walks begun, "
        "2 arms tried with the counting observers and without"
    )


def test_the_estimate_says_what_is_not_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = checked(tmp_path, lambda protocol: None)
    show(report)
    shown = " ".join(capsys.readouterr().err.split())
    assert "About 3 s of one core for these requests and runs" in shown
    assert "Not in it: starting workers and opening configurations, and the rehearsal." in shown
    assert as_value(report)["startup"] == {
        "builds": 1, "configurations": 2, "requests": 4, "walks": 0, "observed": 0,
    }  # fmt: skip


def test_a_rehearsal_is_announced_and_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Rehearsal(
        configuration="pocock", channel="draws", arm="fixed", role="reference", rows=1, crashed=0, crash=None,
        said="", seconds=0.5,
    )  # fmt: skip
    monkeypatch.setattr(verb, "unbuilt", lambda report: ())
    monkeypatch.setattr(rehearse, "rehearse", lambda paths, study: [one])
    paths = drafted(tmp_path, lambda protocol: None)
    verb.check(paths.root)
    shown = " ".join(capsys.readouterr().err.split())
    before, after = shown.split("Rehearsal: one request")
    assert "Rehearsing, which no estimate covers: 1 worker started, 2 configurations opened, 4 arms" in before
    assert "The rehearsal took 0 s by the clock; `prereg seal` makes it again." in after


def test_shards_that_would_be_too_large_are_told_before_anything_is_drawn(tmp_path: Path) -> None:
    def change(protocol: dict[str, Any]) -> None:
        for arm, requests in (("fixed", 8_389), ("peeking", 8_388)):
            protocol["sampling"][arm] = {"draws": 1_000_000, "rows": 100, "shard_requests": requests}

    paths = drafted(tmp_path, change)
    plan_seeds(paths.root)
    report = check_study(paths, rates=RATES, harness_sha256="0" * 64)
    found = [f for f in report.findings if "MiB" in f.what]
    assert [f.where for f in found] == ["protocol.json#/sampling/fixed/shard_requests"] * 2, report.findings
    assert found[0].severity == "warning"
    assert found[0].what.endswith(
        "fixed: a shard of 838,900 draws would have about 256 MiB, at some 320 bytes a draw; more than "
        "256 MiB are refused when it is drawn"
    )
    assert found[0].next_step == "lower shard_requests to 8,388"


def test_a_draw_takes_more_the_more_is_told_of_it() -> None:
    from prereg.draft.lint_size import BESIDE, ENTRY, LINE, TOKEN, bytes_per_draw

    same, other = second_study().protocol.configurations
    assert other.horizon is not None
    assert bytes_per_draw(other) == LINE + other.horizon * TOKEN
    assert bytes_per_draw(same) == LINE + 2 * (TOKEN + ENTRY + 2 * (TOKEN + BESIDE))
