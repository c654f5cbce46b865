"""`prereg check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.next_step import typed
from prereg.cli.output import AsJson, StudyDir, emit, number, say, study_named, table
from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.collect.rehearse import Rehearsal
    from prereg.draft.findings import Finding
    from prereg.draft.lint import CheckReport
    from prereg.store.layout import StudyPaths


@app.command(epilog="Example: prereg check studies/mine --json")
def check(
    folder: StudyDir,
    rehearsal: Annotated[
        bool,
        typer.Option(help="Make one request an arm, on a seed nobody reserves, where the builds are made."),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Schema, references, seeds, alpha, reachable verdicts, power, cost, a rehearsal. Changes nothing."""
    from prereg.codec.convert import to_json
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    report = run_check(paths)
    absent = unbuilt(report)
    report = replace(report, findings=(*report.findings, *absent))
    tried = run_rehearsal(paths, report) if rehearsal and report.ok else ()
    if as_json:
        ok = report.ok and not any(r.fatal for r in tried)
        emit({**as_value(report), "ok": ok, "rehearsal": to_json(tried)})
    else:
        show(report)
        show_rehearsal(tried)
    require_ok(report, str(folder))
    require_rehearsed(tried, str(folder))
    if not as_json:
        builds = "".join(f" once its builds are made: {f.next_step}" for f in absent)
        say(f"The study may be sealed{builds}.")


def unbuilt(report: CheckReport) -> tuple[Finding, ...]:
    """A warning if a build of the study is not made on this machine: neither rehearsal nor seal can be."""
    from prereg.collect.quarters import unmade
    from prereg.draft.findings import Finding

    if report.study is None or not (names := unmade(report.study.protocol)):
        return ()
    how = " --container" if report.study.protocol.runtime == "container" else ""
    return (
        Finding(
            severity="warning",
            what=f"not built here: {', '.join(names)}; without it there is no rehearsal and no seal",
            where="protocol.json#/configurations",
            next_step=f"prereg build {' '.join(names)}{how}",
        ),
    )


def run_rehearsal(paths: StudyPaths, report: CheckReport) -> Sequence[Rehearsal]:
    """One request an arm, if every build of the study is made; else nothing, and a line that says so."""
    from prereg.collect.rehearse import rehearse

    assert report.study is not None
    for finding in unbuilt(report):
        say(f"No rehearsal: not built yet; {finding.next_step}")
        return ()
    return rehearse(paths, report.study)


def show_rehearsal(tried: Sequence[Rehearsal]) -> None:
    """The rehearsal for people."""
    if not tried:
        return
    table(
        "Rehearsal: one request or a few paths an arm, outcomes not kept",
        ("configuration", "channel", "arm", "draws or leaves", "crashed", "crash", "seconds"),
        [(r.configuration, r.channel, r.arm, r.rows, r.crashed, r.crash, f"{r.seconds:.2f}") for r in tried],
    )
    for r in tried:
        if r.crashed:
            say(f"{r.configuration}, {r.arm}: {r.crashed} of {r.rows} crashed ({r.crash}).")
            if r.said:
                say("  " + r.said.replace("\n", "\n  "))


def require_rehearsed(tried: Sequence[Rehearsal], folder: str) -> None:
    """Raise UsageError if a reference arm does nothing but crash."""
    for r in tried:
        if r.fatal:
            raise UsageError(
                f"all that was tried of {r.configuration} in the reference arm {r.arm} crashed ({r.crash})",
                where=f"{folder}/protocol.json",
                next_step=f"mend it, then prereg check {folder}",
            )


def run_check(paths: StudyPaths) -> CheckReport:
    """`check_study` with the rates of the builds that are installed."""
    from prereg.collect.runtime import build_names, load_build
    from prereg.draft.lint import check_study
    from prereg.store.harness import harness_digest

    rates = {name: load_build(name).requests_per_second for name in build_names()}
    report = check_study(paths, rates=rates, harness_sha256=harness_digest())
    folder = study_named() or paths.root
    return replace(
        report,
        findings=tuple(
            replace(f, next_step=typed(f.next_step, folder))
            if f.next_step is not None and f.next_step.startswith("prereg ")
            else f
            for f in report.findings
        ),
    )


def require_ok(report: CheckReport, folder: str) -> None:
    """Raise UsageError (exit code 2) if the study may not be sealed."""
    errors = [f for f in report.findings if f.severity == "error"]
    if errors:
        first = errors[0]
        raise UsageError(
            f"{len(errors)} error{'s' * (len(errors) > 1)} to mend; the first: {first.what}",
            where=f"{folder}/{first.where}",
            next_step=first.next_step or f"mend them, then prereg check {folder}",
        )


def as_value(report: CheckReport) -> dict[str, Any]:
    """The report as JSON."""
    from prereg.codec.convert import to_json

    return {
        "ok": report.ok,
        "findings": to_json(report.findings),
        "alpha": to_json(report.spent),
        "power": to_json(report.power),
        "reach": to_json(report.reach),
        "premise": to_json(report.premise),
        "records": to_json(report.records),
        "mechanisms": to_json(report.mechanisms),
        "cost": to_json(report.cost),
        "core_seconds": report.core_seconds,
    }


def show(report: CheckReport) -> None:
    """The report for people."""
    if report.spent:
        table(
            "Alpha spent",
            ("configuration", "bounds B", "of them records", "level of each", "alpha"),
            [
                (s.configuration, number(s.B), number(s.records), f"{s.level:.2e}", number(s.alpha))
                for s in report.spent
            ],
        )
        table(
            "What could be seen",
            ("configuration", "base rate", "smallest gap", "power at plan", "smallest witness"),
            [
                (
                    row.configuration,
                    number(row.base_rate),
                    number(row.detectable_gap),
                    number(row.power_at_planned_gap),
                    number(row.detectable_witness),
                )
                for row in report.power
            ],
        )
    if report.premise:
        table(
            "What the test of the premise could see",
            ("configuration", "arm", "draws", "level of each", "mass", "power at plan"),
            [
                (
                    row.configuration,
                    row.arm,
                    number(row.draws),
                    f"{row.level:.2e}",
                    number(row.base_rate),
                    number(row.power_at_planned_gap),
                )
                for row in report.premise
            ],
        )
    show_beside(report)
    if report.cost:
        table(
            "Cost",
            ("configuration", "channel", "arm", "draws", "requests or runs", "core seconds"),
            [
                (
                    c.configuration,
                    c.channel,
                    c.arm,
                    number(c.draws),
                    number(c.requests),
                    _seconds(c.core_seconds),
                )
                for c in report.cost
            ],
        )
    if report.findings:
        table(
            "Findings",
            ("", "what", "where", "next"),
            [(f.severity, f.what, f.where, f.next_step) for f in report.findings],
        )
    total = report.core_seconds
    if total is not None and report.cost:
        say(f"About {_seconds(total)} s of one core in all.")
    if not report.ok:
        say("The study may not be sealed yet.")


def show_beside(report: CheckReport) -> None:
    """What stands beside the verdicts: records, and registered mechanisms."""
    if report.records:
        table(
            "Records beside the tokens",
            ("configuration", "kind", "reference", "record events", "smallest rate of mismatches"),
            [
                (row.configuration, row.kind, row.reference, number(row.events), number(row.detectable))
                for row in report.records
            ],
        )
    if report.mechanisms:
        table(
            "Registered mechanisms",
            ("configuration", "hypothesis", "cause", "priority", "level of each", "from P", "seen by A_H"),
            [
                (
                    row.configuration,
                    row.hypothesis,
                    row.cause,
                    number(row.priority),
                    "-" if row.level is None else f"{row.level:.2e}",
                    number(row.distance),
                    number(row.power),
                )
                for row in report.mechanisms
            ],
        )


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"
