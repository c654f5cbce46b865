"""`prereg diff`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, console, emit, say, short, table
from prereg.errors import VerificationFailed

if TYPE_CHECKING:
    from prereg.store.layout import StudyPaths

SHOWN = 40
"""Values that are listed; the rest are counted."""


@app.command(epilog="Example: prereg diff studies/mine")
def diff(folder: StudyDir, as_json: AsJson = False) -> None:
    """Sealed against current: what has changed since the seal, line by line where it is text.

    Records are compared with the ledger's digests of them, and decisions with those of its last analysis,
    value by value. For a key that was revoked, or a ledger that was altered, see `prereg verify`.
    """
    from prereg.codec.convert import to_json
    from prereg.model.plural import plural
    from prereg.seal.compare import diff_study
    from prereg.seal.trailers import seal_tag
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    found = diff_study(paths)
    amendments = len(list(paths.lineage.iterdir())) if paths.lineage.is_dir() else 0
    if as_json:
        emit(to_json(found))
    else:
        if found.files:
            table(
                "Changed since the seal",
                ("file", "change", "note", "sealed", "now"),
                [(f.path, f.change, f.note, short(f.sealed_sha256), short(f.sha256)) for f in found.files],
            )
        for change in found.files:
            if change.diff:
                console().print(change.diff, markup=False, highlight=False)
        if not found.files:
            say(f"Of what is sealed nothing has changed since the seal {short(found.seal)}.")
        _list("Records other than those of the ledger", "file", found.records)
        _list("Decisions other than those of the ledger", "value", found.decisions)
        if found.harness:
            say(
                "The installed harness differs from the sealed one in "
                f"{len(found.harness)} {plural(len(found.harness), 'file')}; "
                "the study goes on with its sealed copy."
            )
    if found.files:
        first = found.files[0]
        changed = f"{folder}/{first.path}"
        back = f"git checkout {seal_tag(paths.name, amendments)} -- {shlex.quote(changed)}"
        if first.change == "added":
            back = f"rm {shlex.quote(changed)}"
        raise VerificationFailed(
            f"{len(found.files)} sealed file{'s' * (len(found.files) > 1)} changed",
            where=changed,
            next_step=back + _otherwise(paths, folder),
        )
    if found.records:
        raise VerificationFailed(
            f"{len(found.records)} file{'s' * (len(found.records) > 1)} of records not as the ledger has "
            f"them; the first: {found.records[0]}",
            where=f"{folder}/records",
            next_step=f"git checkout -- {shlex.quote(f'{folder}/records')}; or, where they are kept "
            f"elsewhere, prereg relocate {shlex.quote(str(folder))} --from PLACE --reason WHY",
        )
    if found.decisions:
        changed = f"{folder}/analysis/decisions.json"
        raise VerificationFailed(
            f"the decisions are not those of the ledger: {found.decisions[0]}",
            where=changed,
            next_step=f"git checkout -- {changed}",
        )


def _list(title: str, column: str, lines: Sequence[str]) -> None:
    """What differs, if anything does."""
    if lines:
        table(title, (column,), [(line,) for line in lines[:SHOWN]])
    if len(lines) > SHOWN:
        say(f"and {len(lines) - SHOWN} more")


def _otherwise(paths: StudyPaths, folder: Path) -> str:
    """What the study's edition and state allow for a change that is meant, after the way to take it back."""
    from prereg.codec.canonical import loads
    from prereg.errors import PreregError
    from prereg.model.places import state
    from prereg.store.files import read_in
    from prereg.store.ledger import read_ledger

    try:
        protocol = loads(read_in(paths.root, "protocol.json")[0], where="protocol.json")
        now = state(read_ledger(read_in(paths.root, "ledger.jsonl")[0]))
    except PreregError:
        return ""
    if not isinstance(protocol, dict) or "edition" not in protocol or now in ("draft", "closed"):
        return ""
    if now == "sealed":
        return f"; if the change is meant: prereg amend {folder} --reason WHY"
    return f"; if anything was done otherwise: prereg deviate {folder} --text WHAT"
