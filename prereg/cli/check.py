"""`prereg check`."""

from __future__ import annotations

import time
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
    from prereg.draft.startup import Startup
    from prereg.model.seal import Entry
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
    from prereg.seal.lost_ledger import refuse_lost_ledger
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    refuse_lost_ledger(paths)
    report = run_check(paths)
    absent = unbuilt(report)
    report = replace(report, findings=(*report.findings, *absent))
    if not as_json:
        show(report)
    sealer = _sealing_verb(paths, report)
    begun = time.monotonic()
    tried = run_rehearsal(paths, report) if rehearsal and report.ok else ()
    seconds = time.monotonic() - begun if tried else None
    if as_json:
        ok = report.ok and not any(r.fatal for r in tried)
        emit({**as_value(report), "ok": ok, "rehearsal": to_json(tried), "rehearsal_seconds": seconds})
    else:
        show_rehearsal(tried)
        if seconds is not None:
            again = "" if sealer is None else f"; `{sealer}` makes it again"
            say(f"The rehearsal took {seconds:,.0f} s by the clock{again}.")
    require_ok(report, str(folder))
    require_rehearsed(tried, str(folder))
    if not as_json:
        builds = "".join(f" once its builds are made: {f.next_step}" for f in absent)
        say(f"The study may be sealed{builds}." if not paths.is_begun else _sealed(paths, sealer))


def _sealing_verb(paths: StudyPaths, report: CheckReport) -> str | None:
    """What would seal the plan as it is now: `seal` for a draft, `amend` where that is open, or nothing."""
    from prereg.model.places import state

    if not paths.is_begun:
        return "prereg seal"
    edition = None if report.study is None else report.study.protocol.edition
    return "prereg amend" if edition is not None and state(_entries(paths)) == "sealed" else None


def _sealed(paths: StudyPaths, verb: str | None) -> str:
    """What is left to do with the plan of a study that is sealed."""
    if verb is None:
        return "The study is sealed, and its plan cannot be changed any more: there is nothing to do here."
    return (
        "The study is sealed, and there is nothing to do, unless the plan was changed: until there are data, "
        f"{verb} {study_named() or paths.root} --reason WHY --key KEY"
    )


def _entries(paths: StudyPaths) -> Sequence[Entry]:
    """The ledger, or nothing where it cannot be read, which is for `verify` to say."""
    from prereg.errors import PreregError
    from prereg.store.files import read_once
    from prereg.store.ledger import read_ledger

    try:
        return read_ledger(read_once(paths.ledger))
    except PreregError:
        return ()


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
    assert report.startup is not None
    say(f"Rehearsing, which no estimate covers: {doing(report.startup)}.")
    return rehearse(paths, report.study)


def doing(startup: Startup) -> str:
    """What a rehearsal does, in words."""
    parts = [
        _many(startup.builds, "worker started", "workers started"),
        _many(startup.configurations, "configuration opened", "configurations opened"),
    ]
    if startup.requests:
        parts.append(_many(startup.requests, "arm tried by a request", "arms tried by a request each"))
    if startup.walks:
        parts.append(_many(startup.walks, "walk begun", "walks begun"))
    if startup.observed:
        parts.append(
            _many(startup.observed, "arm", "arms") + " tried with the counting observers and without"
        )
    return ", ".join(parts)


def _many(n: int, one: str, more: str) -> str:
    return f"{n:,} {one if n == 1 else more}"


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
        "startup": to_json(report.startup),
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
        say(
            f"About {_seconds(total)} s of one core for these requests and runs, at the rates that the "
            "builds state. Not in it: starting workers and opening configurations, and the rehearsal."
        )
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
