"""The ledger on the page, compactly: one line for what belongs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prereg.model.plural import plural
from prereg.model.seal import Entry, EntryType
from prereg.report.shown import count, when

_SHARDS: tuple[EntryType, ...] = ("attempt", "shard-stored")


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline: a ledger entry, or a run of stored shards."""

    seq: str
    time: str
    what: str
    detail: str
    actor: str


def timeline(entries: Sequence[Entry]) -> list[Moment]:
    """The ledger for people: a run of stored shards, with the attempts at them, becomes one line."""
    moments: list[Moment] = []
    again = any(e.type == "shard-stored" and e.body["attempt"] > 1 for e in entries)
    at = 0
    while at < len(entries):
        first, last = entries[at], at
        if first.type in _SHARDS:
            while last + 1 < len(entries) and entries[last + 1].type in _SHARDS:
                last += 1
            moments.append(_shards(entries[at : last + 1]))
        else:
            moments.append(
                Moment(
                    str(first.seq),
                    first.time,
                    first.type.replace("-", " "),
                    _detail(first, again),
                    first.actor,
                )
            )
        at = last + 1
    return moments


def _shards(run: Sequence[Entry]) -> Moment:
    """One line for the entries of a run; one that begins a shard is told where the shard was not stored."""
    first, last = run[0], run[-1]
    stored = [e for e in run if e.type == "shard-stored"]
    done = {_shard(e) for e in stored}
    cut = len({_shard(e) for e in run} - done)
    draws = sum(e.body["draws"] for e in stored)
    parts = [f"{_many(len(stored), 'shard')}, {_many(draws, 'record')}"] if stored else []
    if cut:
        parts.append(f"{count(cut)} begun and not stored")
    seq = str(first.seq) if len(run) == 1 else f"{first.seq}–{last.seq}"
    detail = f"{', '.join(parts)}, until {when(last.time)}"
    return Moment(seq, first.time, "shards stored" if stored else "shards begun", detail, first.actor)


def _shard(entry: Entry) -> tuple[str, int, int]:
    return entry.body["unit"], entry.body["attempt"], entry.body["shard"]


def _detail(entry: Entry, again: bool) -> str:
    """What an entry says; `again` is whether there are shards of more than one attempt."""
    body = entry.body
    match entry.type:
        case "sealed":
            return f"seal {body['seal'][:16]}…" + (
                f", commit {body['commit'][:12]}" if body["commit"] else ""
            )
        case "collection-started":
            return f"attempt {body['attempt']}, {body['workers']} workers, network {body['network']}"
        case "unit-invalid":
            return f"{body['unit']}: {body['reason']}{_cause(body)}"
        case "duplicate":
            return f"{body['unit']}, shard {body['shard']}: {_second(body)}"
        case "collection-ended":
            every = " of every attempt" if again else ""
            done = "complete" if body["complete"] else "not complete"
            lost = f"{_many(len(body['invalid']), 'unit')} lost"
            return f"{done}, {_many(body['stored'], 'shard')} stored{every}, {lost}"
        case "analysis":
            return f"decisions {body['decisions_sha256'][:16]}…"
        case "audit":
            return f"{body['result']}, report {body['report_sha256'][:16]}…"
        case "cosigned":
            return f"seal {body['seal'][:16]}…"
        case "timestamped":
            return f"the authority says {when(body['time'])}"
        case "pushed":
            return f"{body['remote']}, {body['ref']}, commit {body['commit'][:12]}"
        case "amended":
            return f"seal {body['seal'][:16]}… after {body['previous'][:16]}…: {body['reason']}"
        case "deviation":
            return f"{', '.join(body['about']) or 'the whole study'}: {body['text']}"
        case "relocation":
            return f"{_many(len(body['files']), 'file')}: {body['reason']}"
        case "closed":
            return str(body["reason"])
        case _:
            return ""


def _many(number: int, one: str) -> str:
    return f"{count(number)} {plural(number, one)}"


def _cause(body: Mapping[str, Any]) -> str:
    """What edition 3 says of a failure beside its reason."""
    if "cause" not in body:
        return ""
    cause = body["cause"].replace("-", " ")
    return f" ({cause}, attempt {body['attempt']})"


def _second(body: Mapping[str, Any]) -> str:
    if body["differing"] == 0:
        return "a second result, the same"
    return f"a second result, kept: {count(body['differing'])} of its {count(body['lines'])} lines differ"
