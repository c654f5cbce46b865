"""A worker's replies to seeded requests, checked into records: nothing that an engine says is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prereg.codec.convert import outcome_from
from prereg.errors import VerificationFailed
from prereg.model.law import Outcome
from prereg.model.plan import Shard
from prereg.model.record import Counters, Record
from prereg.seal.beside import Entries, entries_from
from prereg.seal.packing import BadShard
from prereg.seal.records import outcome_fault

_COUNTERS = {"proposals", "verifications", "accepted"}
_DRAW = {"outcome", "counters"}
_RECORDED = {*_DRAW, "record"}


class BadReply(VerificationFailed):
    """A worker's replies are not the draws or the tree that was asked for. Its unit is lost."""


def records_of(
    shard: Shard,
    replies: list[Any],
    *,
    seal: str,
    drafter: bool,
    recorded: bool = False,
    attempt: int = 1,
) -> list[Record]:
    """The records of one shard in one attempt, from its raw replies.

    Raises BadReply if a seed is not echoed, a row is missing, or an outcome, a counter or a record is not of
    its form; `drafter` says whether counters may be above 0, `recorded` whether draws carry records.
    """
    if len(replies) != shard.requests:
        raise BadReply(f"{len(replies)} replies to {shard.requests} requests")
    known: dict[tuple[Any, ...], Outcome] = {}
    entries: dict[str, Entries] = {}
    records: list[Record] = []
    unit, draw = shard.unit.id, shard.first_draw
    for number, reply in zip(shard.seeds(), replies, strict=True):
        seed = str(number)
        for row, said in enumerate(_draws(reply, seed, shard.rows, recorded)):
            records.append(
                Record(
                    seal=seal,
                    unit=unit,
                    shard=shard.index,
                    attempt=attempt,
                    draw=draw,
                    seed=seed,
                    row=row,
                    outcome=_outcome(said["outcome"], known, seed),
                    counters=_counters(said["counters"], drafter, seed),
                    record=_record(said, entries, seed) if recorded else None,
                )
            )
            draw += 1
    return records


def _draws(reply: Any, seed: str, rows: int, recorded: bool) -> Iterable[Mapping[str, Any]]:
    if not isinstance(reply, dict) or reply.keys() != {"seed", "draws"}:
        raise BadReply(f"the reply to seed {seed} is not a request's result")
    if reply["seed"] != seed:
        raise BadReply(f"the request with seed {seed} was answered for seed {reply['seed']!r:.40}")
    draws = reply["draws"]
    if not isinstance(draws, list) or len(draws) != rows:
        count = len(draws) if isinstance(draws, list) else "no"
        raise BadReply(f"the request with seed {seed} returned {count} draws, not {rows}")
    for draw in draws:
        if not isinstance(draw, dict) or draw.keys() != (_RECORDED if recorded else _DRAW):
            kind = "outcome with counters and a record" if recorded else "outcome with counters"
            raise BadReply(f"a draw of seed {seed} is no {kind}")
        yield draw


def _outcome(value: Any, known: dict[tuple[Any, ...], Outcome], seed: str) -> Outcome:
    if fault := outcome_fault(value):
        raise BadReply(f"a draw of seed {seed}: {fault}")
    if "tokens" not in value:
        return outcome_from(value)
    # Tiny models return the same few outcomes over and over; each is built once.
    key = (*value["tokens"], value["finish"])
    outcome = known.get(key)
    if outcome is None:
        outcome = known[key] = outcome_from(value)
    return outcome


def _record(said: Mapping[str, Any], known: dict[str, Entries], seed: str) -> Entries:
    record = said["record"]
    # Rows of tiny models repeat as their outcomes do; what is not of its form has a text of its own too.
    text = repr(record)
    entries = known.get(text)
    if entries is None:
        try:
            entries = known[text] = entries_from(record)
        except BadShard as error:
            raise BadReply(f"a draw of seed {seed}: {error.what}") from None
    if entries and "crash" in said["outcome"]:
        raise BadReply(f"a crash of seed {seed} has a record")
    return entries


def _counters(value: Any, drafter: bool, seed: str) -> Counters:
    if not isinstance(value, dict) or value.keys() != _COUNTERS:
        raise BadReply(f"a draw of seed {seed} has no counters")
    if not all(type(n) is int and n >= 0 for n in value.values()):
        raise BadReply(f"a counter of seed {seed} is not a count")
    if not drafter and any(value.values()):
        raise BadReply(f"seed {seed} counts proposals in an arm without a drafter")
    return Counters(**value)
