"""`prereg diff`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, console, emit, say, short, table
from prereg.errors import VerificationFailed

SHOWN = 40
"""Values that are listed; the rest are counted."""


@app.command(epilog="Example: prereg diff studies/mine")
def diff(folder: StudyDir, as_json: AsJson = False) -> None:
    """Sealed against current: what has changed since the seal, line by line where it is text.

    Decisions are compared with those of the ledger's last analysis, value by value.
    """
    from prereg.codec.convert import to_json
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
            say(f"Nothing has changed since the seal {short(found.seal)}.")
        if found.decisions:
            table(
                "Decisions other than those of the ledger",
                ("value",),
                [(line,) for line in found.decisions[:SHOWN]],
            )
            if len(found.decisions) > SHOWN:
                say(f"and {len(found.decisions) - SHOWN} more")
        if found.harness:
            say(
                f"The installed harness differs from the sealed one in {len(found.harness)} files; "
                "the study goes on with its sealed copy."
            )
    if found.files:
        changed = f"{folder}/{found.files[0].path}"
        raise VerificationFailed(
            f"{len(found.files)} sealed file{'s' * (len(found.files) > 1)} changed",
            where=changed,
            next_step=f"git checkout {seal_tag(paths.name, amendments)} -- {changed}",
        )
    if found.decisions:
        changed = f"{folder}/analysis/decisions.json"
        raise VerificationFailed(
            f"the decisions are not those of the ledger: {found.decisions[0]}",
            where=changed,
            next_step=f"git checkout -- {changed}",
        )
