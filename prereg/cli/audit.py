"""`prereg audit`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say, short, table
from prereg.errors import EvidenceIncomplete, VerificationFailed


@app.command(epilog="Example: prereg audit studies/mine --key ~/keys/rev")
def audit(
    folder: StudyDir,
    key: KeyFile,
    principal: Principal = None,
    without_history: Annotated[
        bool, typer.Option("--without-history", help="Waive the order of commits; the report says so.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Derive every decision again with the independent auditor, and sign its report."""
    from prereg.audit.run import PARTS, audit_study, disagreements
    from prereg.cli.deviate import show_deviations
    from prereg.cli.signing import actor
    from prereg.cli.stamp_hint import hint_stamp
    from prereg.store.files import read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import read_ledger

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    say("The auditor runs in a process of its own; it imports nothing of prereg.")
    run = audit_study(paths, key=who.key, principal=who.principal, without_history=without_history)
    value = run.value
    if as_json:
        emit(value)
    else:
        table(
            "The auditor's steps",
            ("", "step", "status", "looked at", "detail"),
            [(s["number"], s["name"], s["status"], s["applied"], s["detail"]) for s in value["steps"]],
        )
        table(
            "Decisions, derived again",
            ("configuration", "derived", "claimed", "agrees"),
            [
                (f"{c['id']}{word}", c[field], c["claimed"], _agrees(c))
                for part, word, field in PARTS
                for c in value.get(part, [])
            ],
        )
        if value["result"] != "FAILED":
            show_deviations(read_ledger(read_once(paths.ledger)))
        entered = value["result"] in ("AGREES", "DISAGREES")
        done = f"signed by {who.principal}" if entered else "neither signed nor entered"
        say(f"{value['result']}: report {short(run.report_sha256)}, {done}.")
        if run.stands:
            say(f"It is the audit of {value['audited_at'][:19]}Z, which stands: another look found the same.")
        if entered:
            hint_stamp(paths, folder)
            say(f"Next: git push, if the others have it from a remote; prereg report {folder}")
    complaints = disagreements(value)
    if value["result"] == "INCOMPLETE":
        analysed = paths.decisions.exists()
        missing = [s["detail"] for s in value["steps"] if s["status"] == "not-checked"]
        raise EvidenceIncomplete(
            f"the auditor could not check everything: {missing[0] if missing else 'see the steps above'}",
            where=str(folder),
            next_step=f"prereg {'status' if analysed else 'analyse'} {folder}",
        )
    if value["result"] != "AGREES":
        raise VerificationFailed(
            f"the auditor says {value['result']}: {complaints[0] if complaints else 'see the steps above'}",
            where=str(folder),
            next_step=f"prereg verify {folder}",
        )


def _agrees(row: dict[str, Any]) -> str:
    if row["claimed"] is None:
        return "nothing is claimed"
    return "yes" if row["agrees"] else "NO"
