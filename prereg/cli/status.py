"""`prereg status`."""

from __future__ import annotations

from typing import Any

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, emit, number, say, short, table


@app.command(epilog="Example: prereg status studies/mine --json")
def status(folder: StudyDir, as_json: AsJson = False) -> None:
    """Where the study stands, by its ledger, and what comes next. Verifies nothing."""
    from prereg.seal.verify import NEXT
    from prereg.store.files import read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import head_of, read_ledger, state

    paths = study_paths(folder)
    data = read_once(paths.ledger) if paths.ledger.exists() else b""
    entries = read_ledger(data) if data else ()
    now = state(entries)
    value: dict[str, Any] = {
        "study": paths.name,
        "state": now,
        "next": f"{NEXT[now]} {folder}",
        "entries": len(entries),
        "ledger_head": head_of(data) if data else None,
        "seal": entries[0].body["seal"] if entries else None,
        "shards": sum(e.type == "shard-stored" for e in entries),
        "draws": sum(e.body["draws"] for e in entries if e.type == "shard-stored"),
        "invalid": {e.body["unit"]: e.body["reason"] for e in entries if e.type == "unit-invalid"},
        "audit": next((e.body["result"] for e in reversed(entries) if e.type == "audit"), None),
    }
    if as_json:
        emit(value)
        return
    say(f"{value['study']}: {now}")
    if entries:
        told = [e for e in entries if e.type != "shard-stored"]
        table(
            "Ledger",
            ("", "time", "what", "by"),
            [(e.seq, e.time, e.type, e.actor) for e in told],
        )
        say(f"  seal         {short(value['seal'])}")
        say(f"  ledger head  {short(value['ledger_head'])} after {len(entries)} entries")
        say(f"  stored       {number(value['shards'])} shards, {number(value['draws'])} draws")
    for unit, reason in value["invalid"].items():
        say(f"  INVALID      {unit}: {reason}")
    if value["audit"]:
        say(f"  audit        {value['audit']}")
    say(f"Next: {value['next']}")
