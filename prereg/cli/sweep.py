"""`prereg sweep`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, number, say, table
from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.collect.sweep_state import State
    from prereg.model.law import Outcome
    from prereg.model.sweep import Case, Row, Table, Try
    from prereg.model.tree import ExactResult, Tree

ASSISTANT_HORIZON = 2
"""A draft model's own choices multiply the paths, so the horizon is short beside one."""


@app.command(
    epilog="Example: prereg sweep --build hf-5.20.2 --junit sweep.xml   ·   "
    "prereg sweep --build hf-5.20.2 --only 'guidance*' --verbose"
)
def sweep(
    build: Annotated[str, typer.Option(help="The engine build, see `prereg build --list`.")],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="This case, or all that match; may be repeated."),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the cases, and run nothing.")] = False,
    processes: Annotated[int, typer.Option(min=1, help="Cases at once, a worker each.")] = 2,
    drafter: Annotated[str, typer.Option(help="The table's own (default), or assistant.")] = "default",
    resume: Annotated[bool, typer.Option("--resume", help="Keep what an earlier sweep finished.")] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML there too.")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", help="departs: exit with 1 if anything departs.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what each verdict rests on, and failing paths.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Every sampling feature of an engine, one after the other: does speculation keep its output law?

    Exploratory: it belongs to no study and decides nothing in one.
    """
    from prereg.collect.runtime import load_build
    from prereg.collect.sweep_table import check_drafter, chosen, load_table
    from prereg.model.sweep import DEPARTURES

    if fail_on not in (None, "departs"):
        raise UsageError(
            f"there is no {fail_on!r} to fail on", where="--fail-on", next_step="--fail-on departs"
        )
    if drafter not in ("default", "assistant"):
        raise UsageError(
            f"there is no drafter {drafter!r}", where="--drafter", next_step="--drafter assistant"
        )
    table_of = load_table(load_build(build).adapter)
    check_drafter(table_of, drafter)
    cases = chosen(table_of, only or [])
    if listing:
        _list(table_of, cases, as_json)
        return
    if junit is not None and not junit.absolute().parent.is_dir():
        raise UsageError("its folder does not exist", where=f"--junit {junit}")
    began = time.monotonic()
    rows, offered, absent = _sweep(
        build, table_of, cases, drafter=drafter, processes=processes, resume=resume, whole=not only
    )
    seconds = time.monotonic() - began
    if junit is not None:
        _write_junit(junit, rows, build, offered, table_of, absent)
    if as_json:
        emit(_as_value(rows, build, table_of, offered, absent, drafter, seconds))
    else:
        _show(rows, build, table_of, offered, absent, verbose, seconds)
    if fail_on is not None and any(row.verdict in DEPARTURES for row in rows):
        raise typer.Exit(1)


def _sweep(
    build: str,
    table_of: Table,
    cases: Sequence[Case],
    *,
    drafter: str,
    processes: int,
    resume: bool,
    whole: bool,
) -> tuple[list[Row], dict[str, Any], dict[str, list[str]]]:
    from prereg.collect.environments import fingerprint_at
    from prereg.collect.runtime import environment_of
    from prereg.collect.sweep import offered_by, run_cases
    from prereg.collect.sweep_state import State, judge_digest, one_sweep, state_file
    from prereg.collect.sweep_table import absent, left_out, uncovered_row
    from prereg.store.harness import harness_digest
    from prereg.store.layout import harness_root

    environment = environment_of(build)
    offered = offered_by(build, table_of)
    taken = fingerprint_at(environment, harness_root().parent)
    kept = state_file(taken.digest, table_of.digest, harness_digest(), judge_digest(), drafter)
    missing = {case.name: sorted(absent(case, table_of, offered)) for case in cases}
    present = [case for case in cases if not missing[case.name]]
    if drafter == "assistant":
        present = [_shorter(case) for case in present]
    with one_sweep(kept):
        state = State(kept, anew=() if resume else {case.name for case in cases})
        todo = [case for case in present if case.name not in state.rows]
        clock = _Clock(len(present), len(present) - len(todo), state)
        judge = _Judge(table_of)
        if todo:
            run_cases(todo, build, table_of, judge, drafter=drafter, processes=processes, finished=clock.add)
    rows = [state.rows[case.name] for case in present]
    if whole:
        rows += [uncovered_row(name, reason) for name, reason in left_out(table_of, offered).items()]
    return rows, offered, {name: settings for name, settings in missing.items() if settings}


def _shorter(case: Case) -> Case:
    tries = tuple(replace(one, horizon=min(one.horizon, ASSISTANT_HORIZON)) for one in case.tries)
    return replace(case, tries=tries)


class _Judge:
    """The exact channel's analysis, for `prereg.collect.sweep_case`."""

    def __init__(self, table_of: Table) -> None:
        self._table = table_of

    def law(self, tree: Tree) -> Mapping[Outcome, float]:
        from prereg.analyse.exact import law_of

        return law_of(tree)

    def decide(self, off: Tree, on: Tree, case: Case, tried: Try) -> ExactResult:
        from prereg.analyse.exact import decide_exactly, law_of
        from prereg.collect.sweep_walk import model_of, prompt_of
        from prereg.draft.family import events_of
        from prereg.draft.rules import documented_rules

        model, prompt = model_of(self._table, tried), prompt_of(self._table, tried)
        return decide_exactly(
            off,
            on,
            events=events_of(law_of(off), law_of(on), tried.horizon),
            predicates=documented_rules({**case.beside, **case.features}, tried.horizon, prompt, model),
        )

    def failing(self, off: Tree, on: Tree) -> Sequence[Sequence[int]]:
        from prereg.analyse.exact import departing_paths

        return departing_paths(off, on)


class _Clock:
    """Keeps each finished case and says so, with the rate and the time left."""

    def __init__(self, total: int, before: int, state: State) -> None:
        self._total, self._done, self._before = total, before, before
        self._state = state
        self._began = time.monotonic()
        if before:
            say(f"{before} of {total} cases are there from an earlier sweep")

    def add(self, row: Row) -> None:
        from prereg.collect.progress import duration

        self._state.add(row)
        self._done += 1
        spent = time.monotonic() - self._began
        rate = (self._done - self._before) / max(spent, 1e-9)
        left = duration((self._total - self._done) / rate)
        say(
            f"[{self._done}/{self._total}] {row.case}: {row.verdict}, {row.seconds:.1f} s"
            f"   ({60 * rate:.0f} cases a minute, {left} left)"
        )


def _list(table_of: Table, cases: Sequence[Case], as_json: bool) -> None:
    from prereg.codec.convert import to_json

    if as_json:
        emit(
            {
                "cases": [to_json(case) for case in cases],
                "excluded": table_of.excluded,
                "uncovered": table_of.uncovered,
            }
        )
        return
    table(
        "Cases of the sweep", ("case", "documented as", "needs"), [(c.name, c.source, c.note) for c in cases]
    )


def _write_junit(
    path: Path,
    rows: Sequence[Row],
    build: str,
    offered: Mapping[str, Any],
    table_of: Table,
    absent: Mapping[str, Sequence[str]],
) -> None:
    from prereg.report.junit import junit
    from prereg.store.files import write_whole

    engine = f"{offered['engine']} {offered['version']}"
    vocabulary = table_of.model["vocab"]
    data = junit(rows, build=build, engine=engine, vocabulary=vocabulary, absent=absent)
    write_whole(path.absolute(), data)


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        found[row.verdict] = found.get(row.verdict, 0) + 1
    return found


def _as_value(
    rows: Sequence[Row],
    build: str,
    table_of: Table,
    offered: Mapping[str, Any],
    absent: Mapping[str, Sequence[str]],
    drafter: str,
    seconds: float,
) -> dict[str, Any]:
    from prereg.collect.sweep_state import row_json

    return {
        "exploratory": True,
        "build": build,
        "engine": {"name": offered["engine"], "version": offered["version"]},
        "table": table_of.digest,
        "drafter": drafter,
        "verdicts": _counts(rows),
        "cases": [row_json(row) for row in rows],
        "not_in_this_release": {name: list(settings) for name, settings in absent.items()},
        "excluded": table_of.excluded,
        "seconds": round(seconds, 3),
    }


def _show(
    rows: Sequence[Row],
    build: str,
    table_of: Table,
    offered: Mapping[str, Any],
    absent: Mapping[str, Sequence[str]],
    verbose: bool,
    seconds: float,
) -> None:
    from prereg.collect.progress import duration
    from prereg.report.junit import rests_on, shown_path

    table(
        f"Sweep of {build}, {offered['engine']} {offered['version']} (exploratory)",
        ("case", "verdict", "TV", "outcomes", "proposed", "accepted", "runs", "active"),
        [_cells(row) for row in rows if row.verdict != "NOT_COVERED"],
    )
    for row in rows:
        if row.verdict == "NOT_COVERED":
            say(f"NOT COVERED  {row.case}: {row.reason}")
    for name, settings in absent.items():
        say(f"not in this release  {name}: {', '.join(settings)}")
    for row in rows:
        if row.verdict not in ("EQUAL_WITHIN_TOLERANCE", "NOT_COVERED") or verbose:
            say(f"{row.case}: {row.verdict}: {row.reason}")
        if verbose:
            for line in rests_on(row) + shown_path(row, table_of.model["vocab"]):
                say(f"    {line}")
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(_counts(rows).items()))
    say(f"{counts}; {duration(seconds)}. Equality speaks of the model, prompt and horizon that were tried.")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.case,
        row.verdict,
        number(row.tv_upper),
        number(row.outcomes),
        number(row.proposals),
        number(row.accepted),
        number(row.runs_off + row.runs_on),
        number(min(row.activity.values())) if row.activity else "-",
    )
