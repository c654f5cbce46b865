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
    """Enumerate reference and mechanism laws on the engine and write the event family (before the seal)."""
    import json

    from prereg.codec.convert import read_authored
    from prereg.codec.study_files import HYPOTHESES
    from prereg.collect.oracle import enumerate_references
    from prereg.collect.progress import Lines
    from prereg.draft.family import build_events, events_json
    from prereg.model.hypotheses import Hypotheses
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
    # In a study of the first edition a file of this name is free text.
    registers = protocol.since(2) and (paths.root / HYPOTHESES).exists()
    hypotheses = (
        read_authored(read_once(paths.root / HYPOTHESES), "hypotheses", Hypotheses, where=HYPOTHESES)
        if registers
        else None
    )
    found = enumerate_references(
        protocol, Lines(sys.stderr), hypotheses=hypotheses, folder=paths.root, cross_check=cross_check
    )
    made = build_events(
        protocol, found.laws, harness_digest(), mechanisms=found.mechanisms, replays=found.replays
    )
    value = events_json(made)
    write_whole(paths.events, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
    rows = [
        (
            name,
            len(family.reference or ()),
            len(family.events),
            None if family.hypothesis is None else family.hypothesis.id,
            None if family.hypothesis is None else f"{family.hypothesis.switch:.1e}",
            None if family.records is None else len(family.records),
        )
        for name, family in made.configurations.items()
    ]
    if as_json:
        keys = ("outcomes", "events", "hypothesis", "switch", "records")
        emit({"study": paths.name, "configurations": {n: dict(zip(keys, r, strict=True)) for n, *r in rows}})
        return
    table(
        "Event families",
        (
            "configuration",
            "outcomes with P > 0",
            "listed events",
            "hypothesis",
            "its distance from P when logical",
            "prefixes of records",
        ),
        rows,
    )
    say(f"Wrote {paths.events}. Next: prereg check {folder}")
