"""`prereg verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prereg.cli.app import app
from prereg.cli.next_step import typed
from prereg.cli.output import AsJson, StudyDir, emit, say, table
from prereg.errors import VerificationFailed

if TYPE_CHECKING:
    from prereg.model.seal import Step


@app.command(epilog="Example: prereg verify studies/mine --json")
def verify(folder: StudyDir, as_json: AsJson = False) -> None:
    """Check seal, signatures, ledger, records and order, step by step. Derives no decision."""
    from prereg.codec.convert import to_json
    from prereg.seal.verify import verify_report
    from prereg.store.layout import study_paths

    steps = [
        replace(s, next_step=None if s.next_step is None else typed(s.next_step, folder))
        for s in verify_report(study_paths(folder))
    ]
    failed = [s for s in steps if s.status == "failed"]
    if as_json:
        emit({"study": folder.name, "ok": not failed, "steps": to_json(steps)})
    else:
        table(
            f"Verification of {folder}",
            ("", "step", "status", "looked at", "detail"),
            [(s.number, s.name, s.status, s.applied, _detail(s)) for s in steps],
        )
    if failed:
        raise VerificationFailed(
            f"step {failed[0].number} ({failed[0].name}): {failed[0].detail}",
            where=str(folder),
            next_step=failed[0].next_step or f"prereg diff {folder}",
        )
    if not as_json:
        say("Everything that this study's state calls for verifies.")


def _detail(step: Step) -> str:
    return step.detail if step.next_step is None else f"{step.detail} (next: {step.next_step})"
