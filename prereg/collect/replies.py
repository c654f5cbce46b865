"""A worker's replies to seeded requests, checked into records: nothing that an engine says is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prereg.codec.convert import outcome_from
from prereg.errors import VerificationFailed
from prereg.model.law import Outcome
from prereg.model.plan import Shard
from prereg.model.record import Counters, Record
from prereg.seal.records import outcome_fault

_COUNTERS = {"proposals", "verifications", "accepted"}


class BadReply(VerificationFailed):
    """A worker's replies are not the draws or the tree that was asked for. Its unit is lost."""


def records_of(shard: Shard, replies: list[Any], *, seal: str, drafter: bool) -> list[Record]:
    """The records of one shard from its raw replies.

    Raises BadReply if a seed is not echoed, a row is missing, or an outcome or a counter is not of its form;
    `drafter` says whether counters may be above 0.
    """
    if len(replies) != shard.requests:
        raise BadReply(f"{len(replies)} replies to {shard.requests} requests")
    known: dict[tuple[Any, ...], Outcome] = {}
    records: list[Record] = []
    unit, draw = shard.unit.id, shard.first_draw
    for number, reply in zip(shard.seeds(), replies, strict=True):
        seed = str(number)
        for row, (outcome, counters) in enumerate(_draws(reply, seed, shard.rows)):
            records.append(
                Record(
                    seal=seal,
                    unit=unit,
                    shard=shard.index,
                    attempt=1,
                    draw=draw,
                    seed=seed,
                    row=row,
                    outcome=_outcome(outcome, known, seed),
                    counters=_counters(counters, drafter, seed),
                )
            )
            draw += 1
    return records


def _draws(reply: Any, seed: str, rows: int) -> Iterable[tuple[Any, Any]]:
    if not isinstance(reply, dict) or reply.keys() != {"seed", "draws"}:
        raise BadReply(f"the reply to seed {seed} is not a request's result")
    if reply["seed"] != seed:
        raise BadReply(f"the request with seed {seed} was answered for seed {reply['seed']!r:.40}")
    draws = reply["draws"]
    if not isinstance(draws, list) or len(draws) != rows:
        count = len(draws) if isinstance(draws, list) else "no"
        raise BadReply(f"the request with seed {seed} returned {count} draws, not {rows}")
    for draw in draws:
        if not isinstance(draw, dict) or draw.keys() != {"outcome", "counters"}:
            raise BadReply(f"a draw of seed {seed} is no outcome with counters")
        yield draw["outcome"], draw["counters"]


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


def _counters(value: Any, drafter: bool, seed: str) -> Counters:
    if not isinstance(value, dict) or value.keys() != _COUNTERS:
        raise BadReply(f"a draw of seed {seed} has no counters")
    if not all(type(n) is int and n >= 0 for n in value.values()):
        raise BadReply(f"a counter of seed {seed} is not a count")
    if not drafter and any(value.values()):
        raise BadReply(f"seed {seed} counts proposals in an arm without a drafter")
    return Counters(**value)
