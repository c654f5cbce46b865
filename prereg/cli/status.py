"""`prereg status`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, emit, number, say, short, table

if TYPE_CHECKING:
    from prereg.model.seal import Entry
    from prereg.store.layout import StudyPaths

CHANNELS = {
    "draws": "by draws",
    "exact": "exactly",
    "premise": "premise",
    "records": "records",
    "hypothesis": "mechanism by draws",
    "exact-hypothesis": "mechanism exactly",
}


@app.command(epilog="Example: prereg status studies/mine --json")
def status(folder: StudyDir, as_json: AsJson = False) -> None:
    """Where the study stands, by its ledger, and what comes next. Verifies nothing."""
    from prereg.cli.deviate import show_deviations
    from prereg.model.places import deviations_of, seals, state
    from prereg.seal.standing import standing
    from prereg.seal.verify import NEXT
    from prereg.store.files import read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import head_of, read_ledger

    paths = study_paths(folder)
    exact = _exact_stages(paths)
    data = read_once(paths.ledger) if paths.ledger.exists() else b""
    entries = read_ledger(data) if data else ()
    stored = [e for e in entries if e.type == "shard-stored"]
    now = state(entries)
    lineage = seals(entries)
    pushed = next((e for e in reversed(entries) if e.type == "pushed"), None)
    seal = standing(paths)
    verb = seal.verb if seal is not None and now == "sealed" else None
    value: dict[str, Any] = {
        "study": paths.name,
        "state": now,
        "next": f"{verb or NEXT[now]} {folder}",
        "entries": len(entries),
        "ledger_head": head_of(data) if data else None,
        "seal": lineage[-1] if lineage else None,
        "amended": lineage[:-1],
        "shards": len(stored),
        "draws": sum(e.body["draws"] for e in stored if e.body["unit"].split(".")[0] not in exact),
        "leaves": sum(e.body["draws"] for e in stored if e.body["unit"].split(".")[0] in exact),
        "invalid": {e.body["unit"]: e.body["reason"] for e in entries if e.type == "unit-invalid"},
        "verdicts": _verdicts(paths, entries),
        "signatures": None if seal is None or seal.signatures is None else seal.signatures.as_json(),
        "timestamp": None if seal is None else seal.stamp.as_json(),
        "audit": next((e.body["result"] for e in reversed(entries) if e.type == "audit"), None),
        "deviations": [_told(e, "about", "text") for e in deviations_of(entries)],
        "pushed": None if pushed is None else _told(pushed, "remote", "ref", "commit"),
        "closed": next((e.body["reason"] for e in reversed(entries) if e.type == "closed"), None),
    }
    if as_json:
        emit(value)
        return
    say(f"{value['study']}: {now}")
    if entries:
        shown = [e for e in entries if e.type != "shard-stored"]
        table(
            "Ledger",
            ("", "time", "what", "by"),
            [(e.seq, e.time, e.type, e.actor) for e in shown],
        )
        after = f", amendment {len(lineage) - 1} of {short(lineage[0])}" if len(lineage) > 1 else ""
        say(f"  seal         {short(value['seal'])}{after}")
        if seal is not None and seal.signatures is not None:
            missing = "" if seal.signatures.complete else f"; missing: {', '.join(seal.signatures.missing)}"
            say(f"  signed       {seal.signatures}{missing}")
        if seal is not None and seal.stamp.state != "none":
            say(f"  time stamp   {seal.stamp}")
        say(f"  ledger head  {short(value['ledger_head'])} after {len(entries)} entries")
        leaves = f", {number(value['leaves'])} leaves of trees" if value["leaves"] else ""
        say(f"  stored       {number(value['shards'])} shards, {number(value['draws'])} draws{leaves}")
    if sent := value["pushed"]:
        say(f"  pushed       {short(sent['commit'])} to {sent['ref']} of {sent['remote']}")
    show_deviations(entries)
    if value["closed"]:
        say(f"  closed       {value['closed']}")
    for unit, reason in value["invalid"].items():
        say(f"  INVALID      {unit}: {reason}")
    if value["verdicts"]:
        channels = [c for c in CHANNELS if any(c in row for row in value["verdicts"].values())]
        table(
            "Verdicts",
            ("configuration", *(CHANNELS[c] for c in channels)),
            [(name, *(row.get(c, "-") for c in channels)) for name, row in value["verdicts"].items()],
        )
    if value["audit"]:
        say(f"  audit        {value['audit']}")
    say(f"Next: {value['next']}")


def _told(entry: Entry, *names: str) -> dict[str, Any]:
    """An entry and those of its words, as JSON."""
    words = {name: entry.body[name] for name in names}
    return {"entry": entry.seq, "time": entry.time, "actor": entry.actor, **words}


def _exact_stages(paths: StudyPaths) -> frozenset[str]:
    """The stages whose units are trees, as far as the protocol can be read; its faults are for `check`."""
    from prereg.codec.convert import read_authored
    from prereg.errors import PreregError
    from prereg.model.study import Protocol
    from prereg.store.files import read_in

    try:
        data = read_in(paths.root, "protocol.json")[0]
        protocol = read_authored(data, "protocol", Protocol, where="protocol.json")
    except PreregError:
        return frozenset()
    return frozenset(stage.id for stage in protocol.stages if stage.channel == "exact")


def _verdicts(paths: StudyPaths, entries: Sequence[Entry]) -> dict[str, dict[str, str]] | None:
    """The verdicts of the ledger's last analysis; None without one, or if its file is not what it was."""
    from prereg.cli.decisions import verdicts
    from prereg.codec.canonical import digest
    from prereg.codec.convert import read_machine
    from prereg.errors import PreregError
    from prereg.model.verdict import Decisions
    from prereg.store.files import read_in

    entry = next((e for e in reversed(entries) if e.type == "analysis"), None)
    if entry is None:
        return None
    try:
        data = read_in(paths.root, "analysis/decisions.json")[0]
        if digest(data) != entry.body["decisions_sha256"]:
            return None
        return verdicts(read_machine(data, "decisions", Decisions, where="analysis/decisions.json"))
    except PreregError:
        return None
