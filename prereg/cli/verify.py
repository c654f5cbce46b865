"""`prereg verify`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, emit, say, table
from prereg.errors import VerificationFailed


@app.command(epilog="Example: prereg verify studies/mine --json")
def verify(folder: StudyDir, as_json: AsJson = False) -> None:
    """Check seal, signatures, ledger, records and order, step by step. Derives no decision."""
    from prereg.codec.convert import to_json
    from prereg.seal.verify import verify_report
    from prereg.store.layout import study_paths

    steps = verify_report(study_paths(folder))
    failed = [s for s in steps if s.status == "failed"]
    if as_json:
        emit({"study": folder.name, "ok": not failed, "steps": to_json(steps)})
    else:
        table(
            f"Verification of {folder}",
            ("", "step", "status", "looked at", "detail"),
            [(s.number, s.name, s.status, s.applied, s.detail) for s in steps],
        )
    if failed:
        raise VerificationFailed(
            f"step {failed[0].number} ({failed[0].name}): {failed[0].detail}",
            where=str(folder),
            next_step=f"prereg diff {folder}",
        )
    if not as_json:
        say("Everything that this study's state calls for verifies.")
