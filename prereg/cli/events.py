"""`prereg events`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, emit, say, table
from prereg.errors import UsageError, WrongState


@app.command(epilog="Example: prereg events studies/mine --cross-check")
def events(
    folder: StudyDir,
    cross_check: Annotated[
        bool, typer.Option("--cross-check", help="Enumerate again with the slow twin and compare.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Enumerate the reference laws on the engine and write the event family (before the seal)."""
    import json

    from prereg.codec.convert import read_authored
    from prereg.collect.oracle import reference_laws
    from prereg.collect.progress import Lines
    from prereg.draft.family import build_events, events_json
    from prereg.model.study import Protocol
    from prereg.store.files import read_once, write_whole
    from prereg.store.harness import harness_digest
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    if paths.ledger.exists():
        raise WrongState(
            "the study is sealed: its events stay", where=str(folder), next_step="prereg status DIR"
        )
    protocol = read_authored(read_once(paths.protocol), "protocol", Protocol, where="protocol.json")
    if protocol.decision.rule == "event-gap":
        raise UsageError(
            "this study has no oracle; its events are written by hand",
            where=str(paths.events),
            next_step=f"edit {paths.events}",
        )
    laws = reference_laws(protocol, Lines(sys.stderr), folder=paths.root, cross_check=cross_check)
    made = build_events(protocol, laws, harness_digest())
    value = events_json(made)
    write_whole(paths.events, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
    rows = [(name, len(f.reference or ()), len(f.events)) for name, f in made.configurations.items()]
    if as_json:
        emit({"study": paths.name, "configurations": {n: {"outcomes": o, "events": e} for n, o, e in rows}})
        return
    table("Event families", ("configuration", "outcomes with P > 0", "listed events"), rows)
    say(f"Wrote {paths.events}. Next: prereg check {folder}")
