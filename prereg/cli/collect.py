"""`prereg collect`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, number, say, table
from prereg.errors import EvidenceIncomplete


@app.command(epilog="Example: prereg collect studies/mine --key ~/keys/ada --workers 2")
def collect(
    folder: StudyDir,
    key: KeyFile,
    principal: Principal = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes; one a core by default.")] = None,
    ledger_times: Annotated[
        Literal["count", "leave-out"] | None,
        typer.Option(
            help="For a ceiling of time that is reached by the ledger's times of earlier runs alone, which a "
            "clock that jumped or a machine that slept makes longer: count them, and what the ceiling takes "
            "is lost; or leave them out."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run what is missing of the sealed draws. Safe to kill, and to start again.

    Edition 3: a unit that fails is tried again, whole, on the same seeds, as often as the protocol allows.

    What a killed run left whole is kept and drawn again; the draws that are not the same are counted.
    """
    from prereg.cli.attempts import copies_json, show_attempts, show_copies, tried_json
    from prereg.cli.progress import renderer
    from prereg.cli.signing import actor
    from prereg.cli.stamp_hint import hint_stamp
    from prereg.collect.runner import collect_study
    from prereg.seal.trust import load_trust
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    before = paths.ledger.stat().st_size if paths.ledger.exists() else 0
    try:
        result = collect_study(
            paths,
            key=who.key,
            principal=who.principal,
            progress=renderer(),
            workers=workers,
            ledger_times=ledger_times,
        )
    except KeyboardInterrupt:
        # Signals are caught while workers run; this one came before them, or after.
        nothing = paths.ledger.exists() and paths.ledger.stat().st_size == before
        raise EvidenceIncomplete(
            "interrupted; " + ("nothing was drawn" if nothing else "what is stored stays"),
            where=str(folder),
            next_step=f"prereg collect {folder} --key {key}",
        ) from None
    if as_json:
        emit(
            {
                "study": paths.name,
                "complete": result.complete,
                "shards": {"planned": result.planned, "stored": result.stored},
                "draws": result.draws,
                "leaves": result.leaves,
                "invalid": dict(result.invalid),
                "left_open": sorted(result.left_open),
                "attempts": {"allowed": result.attempts, **tried_json(result.tried)},
                "duplicates": copies_json(result.duplicates),
                "crashes": dict(result.crashes),
                "network": result.network,
                "network_reason": result.network_reason,
                "seconds": round(result.seconds, 3),
                "commit": result.commit,
            }
        )
    else:
        rate = result.draws / result.seconds if result.seconds > 0 else 0
        walked = f" and walked {result.leaves:,} leaves" if result.leaves else ""
        say(
            f"{result.stored} of {result.planned} shards stored; "
            f"this run made {result.draws:,} draws{walked} "
            f"in {result.seconds:.1f} s ({rate:,.0f} draws a second)."
        )
        if result.network is not None:
            reason = f" ({result.network_reason})" if result.network_reason else ""
            say(f"The workers' network was {result.network}{reason}.")
        if result.crashes:
            table(
                "Draws and leaves that crashed (a crash is an outcome, and is counted as one)",
                ("unit", "crashed in this run"),
                [(unit, number(count)) for unit, count in sorted(result.crashes.items())],
            )
        show_attempts(result.tried, result.attempts, complete=result.complete, left_open=result.left_open)
        show_copies(result.duplicates)
        lost = sorted(result.invalid.items())
        if invalid := [row for row in lost if row[0] not in result.left_open]:
            table("Lost units, INVALID", ("unit", "reason"), invalid)
        if left := [row for row in lost if row[0] in result.left_open]:
            table("Units that a ceiling left open", ("unit", "reason"), left)
        if not result.complete:
            say("Interrupted. What is stored stays; shards that were not finished will be drawn whole.")
        hint_stamp(paths, folder)
        if not result.complete:
            say(f"Next: prereg collect {folder} --key {key}")
        elif "author" in load_trust(paths).roles.get(who.principal, ()):
            say(f"Next: prereg analyse {folder} --key {key}")
        else:
            say(f"Next, by an author: prereg analyse {folder} --key KEY")
    raise typer.Exit(result.exit_code)
