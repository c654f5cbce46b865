"""`prereg status`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, emit, number, say, short, table, told

if TYPE_CHECKING:
    from prereg.model.seal import Entry, State
    from prereg.model.study import Protocol
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
    from prereg.cli.attempts import copies_json, show_attempts, show_copies, tried_json
    from prereg.cli.deviate import show_deviations
    from prereg.cli.next_step import typed
    from prereg.codec.convert import to_json
    from prereg.model.attempts import copies_of, tried
    from prereg.model.places import deviations_of, seals, state
    from prereg.model.plural import plural
    from prereg.seal.lost_ledger import refuse_lost_ledger
    from prereg.seal.standing import standing
    from prereg.seal.verified import present_shards
    from prereg.seal.verify import NEXT
    from prereg.store.files import read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import head_of, read_ledger

    paths = study_paths(folder)
    refuse_lost_ledger(paths)
    plan = _protocol(paths)
    exact = frozenset() if plan is None else frozenset(s.id for s in plan.stages if s.channel == "exact")
    data = read_once(paths.ledger) if paths.ledger.exists() else b""
    entries = read_ledger(data) if data else ()
    # Without a protocol that can be read no unit is known to be over, and every one in its latest attempt.
    allowed = 1 if plan is None else plan.attempts
    units = tried(entries, allowed)
    copies = copies_of(entries)
    over = {unit: one.reason for unit, one in units.items() if one.over}
    stored = list(present_shards(entries, allowed).values())
    now = state(entries)
    lineage = seals(entries)
    pushed = next((e for e in reversed(entries) if e.type == "pushed"), None)
    seal = standing(paths)
    verb = seal.verb if seal is not None and now == "sealed" else None
    url = " --url URL" if verb == "prereg timestamp" else ""
    value: dict[str, Any] = {
        "study": paths.name,
        "state": now,
        "next": typed(
            f"{verb or ('prereg check' if _is_open(paths, now) else NEXT[now])} {folder}{url}", folder
        ),
        "entries": len(entries),
        "ledger_head": head_of(data) if data else None,
        "seal": lineage[-1] if lineage else None,
        "amended": lineage[:-1],
        "shards": len(stored),
        "draws": sum(body["draws"] for body in stored if body["unit"].split(".")[0] not in exact),
        "leaves": sum(body["draws"] for body in stored if body["unit"].split(".")[0] in exact),
        "invalid": over,
        "left_open": sorted(
            u for u in over if plan is not None and units[u].is_left_open(plan.ceilings.on_ceiling)
        ),
        "attempts": {"allowed": allowed, **tried_json(units)},
        "duplicates": copies_json(copies),
        "verdicts": _verdicts(paths, entries),
        "signatures": None if seal is None or seal.signatures is None else seal.signatures.as_json(),
        "timestamp": None if seal is None else seal.stamp.as_json(),
        "head_stamps": None if seal is None or seal.heads is None else seal.heads.as_json(),
        "revoked": [] if seal is None else to_json(seal.revoked),
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
        shown = [e for e in entries if e.type not in ("attempt", "shard-stored")]
        table(
            "Ledger",
            ("", "time", "what", "by"),
            [(e.seq, e.time, _what(e), e.actor) for e in shown],
        )
        after = f", amendment {len(lineage) - 1} of {short(lineage[0])}" if len(lineage) > 1 else ""
        say(f"  seal         {short(value['seal'])}{after}")
        if seal is not None and seal.signatures is not None:
            missing = "" if seal.signatures.complete else f"; missing: {', '.join(seal.signatures.missing)}"
            say(f"  signed       {seal.signatures}{missing}")
        if seal is not None and seal.stamp.state != "none":
            say(f"  time stamp   {seal.stamp}")
        if seal is not None and seal.heads is not None:
            say(f"  head stamps  {seal.heads}")
        for gone in () if seal is None else seal.revoked:
            say(f"  REVOKED      {gone}; prereg verify {folder} says what still counts")
        say(f"  ledger head  {short(value['ledger_head'])} after {len(entries)} entries")
        every = [e.body for e in entries if e.type == "shard-stored"]
        drawn = sum(body["draws"] for body in every if body["unit"].split(".")[0] not in exact)
        all_of_them = f"{number(len(every))} shards, {number(drawn)} draws"
        more = len(every) > len(stored)
        beyond = f" (of the attempts that count; of every attempt {all_of_them})" if more else ""
        leaves = f", {number(value['leaves'])} leaves of trees" if value["leaves"] else ""
        shards = f"{number(value['shards'])} {plural(value['shards'], 'shard')}"
        say(f"  stored       {shards}, {number(value['draws'])} draws{leaves}{beyond}")
    if sent := value["pushed"]:
        say(f"  pushed       {short(sent['commit'])} to {sent['ref']} of {sent['remote']}")
    show_deviations(entries)
    if value["closed"]:
        say(f"  closed       {told(str(value['closed']))}")
    ended = next((e for e in reversed(entries) if e.type == "collection-ended"), None)
    complete = now != "collecting" and ended is not None and ended.body["complete"]
    show_attempts(units, allowed, complete=complete, left_open=value["left_open"])
    show_copies(copies)
    for unit, reason in over.items():
        say(f"  {'left open' if unit in value['left_open'] else 'INVALID':11}  {unit}: {told(str(reason))}")
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


def _is_open(paths: StudyPaths, now: State) -> bool:
    """Whether it is a draft that is not filled in yet."""
    from prereg.codec.study_files import AUTHORED
    from prereg.draft.lint import blanks
    from prereg.errors import PreregError
    from prereg.store.files import read_in

    if now != "draft":
        return False
    try:
        return bool(blanks({name: read_in(paths.root, name)[0] for name in AUTHORED}))
    except PreregError:
        return True


def _what(entry: Entry) -> str:
    """The type of an entry; of a failure, also whose it was."""
    if entry.type != "unit-invalid":
        return entry.type
    return f"{entry.type}: {entry.body['unit']}, attempt {entry.body['attempt']}"


def _told(entry: Entry, *names: str) -> dict[str, Any]:
    """An entry and those of its words, as JSON."""
    words = {name: entry.body[name] for name in names}
    return {"entry": entry.seq, "time": entry.time, "actor": entry.actor, **words}


def _protocol(paths: StudyPaths) -> Protocol | None:
    """The protocol, as far as it can be read; its faults are for `check`."""
    from prereg.codec.convert import read_authored
    from prereg.errors import PreregError
    from prereg.model.study import Protocol
    from prereg.store.files import read_in

    try:
        data = read_in(paths.root, "protocol.json")[0]
        return read_authored(data, "protocol", Protocol, where="protocol.json")
    except PreregError:
        return None


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
