"""The schedule of Transformers' assisted decoding with prompt lookup, around any chain of processors.

From `GenerationMixin._assisted_decoding` and `PromptLookupCandidateGenerator.get_candidates`, which are the
same in 5.12.0 and 5.17.0 but for the cap at the end. One round, from a committed prefix h:
1. The drafter looks for a continuation, and asks the processors about each of its tokens d_1, d_2, ... in
   turn: it calls them on h, h d_1, ... with scores that are all ones, and cuts the continuation before the
   first token that they forbid. An empty one makes it look for the next.
2. It is cut before an end token.
3. The stopping rule is asked about h d_1 ... d_k.
4. The processors are called on h, h d_1, ..., h d_1 ... d_k with the model's scores.
5. A token is drawn from each of these rows; those proposed are kept up to the first that was not drawn, and
   the one drawn in its place, or after all of them, is added. That last one is left out if the stopping rule
   said yes in step 3.
6. Later versions cut what is added at the horizon.
7. The stopping rule is asked about what is committed now, once.
Nothing is rolled back but the model's own cache.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.adapters.base import Outcome, Prefix
from harness.mechanisms.base import Call, Leaf, Raised, first_mismatch, lookup


class Chain(Protocol):
    """The processors of one request, at some moment of it."""

    def fork(self) -> Chain:
        """Another at the same moment."""
        ...

    def allows(self, prefix: Prefix, token: int, first: bool) -> bool:
        """Step 1's question; `first` begins a continuation, whose scores are new ones. May raise `Raised`."""
        ...

    def row(self, prefix: Prefix) -> Sequence[float]:
        """Step 4's answer as probabilities, (V,) float64, NaN if they are none. May raise `Raised`."""
        ...

    def calls(self) -> tuple[Call, ...]:
        """What was asked so far."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One configuration as the schedule needs it."""

    prompt: Prefix
    horizon: int
    ends: frozenset[int]
    """End tokens."""

    max_ngram: int
    max_tokens: int
    capped: bool
    """Step 6 is there."""

    stops: Callable[[Prefix], bool]
    """The engine's stopping rule on what stands after the prompt."""

    outcome: Callable[[Prefix], Outcome]
    """The return map."""

    logical: bool
    """Ask the stopping rule after each token, and return nothing past its first yes."""


def leaves(request: Request, chain: Chain) -> Iterator[Leaf]:
    """Every way through a request, with its probability."""
    open_: list[tuple[Prefix, float, Chain]] = [((), 1.0, chain)]
    while open_:
        committed, weight, before = open_.pop()
        now = before.fork()
        try:
            children = list(_round(request, committed, now))
        except Raised as error:
            yield Leaf(outcome={"crash": error.args[0]}, p=weight, calls=now.calls())
            continue
        for added, chance in reversed(children):
            after, p = (*committed, *added), weight * chance
            ended = _ended(request, len(committed), after)
            if ended is not None:
                yield Leaf(outcome=request.outcome(ended), p=p, calls=now.calls())
            elif not added:
                raise AssertionError(f"a round after {committed} adds nothing and does not end")
            else:
                open_.append((after, p, now))


def _ended(request: Request, start: int, after: Prefix) -> Prefix | None:
    """What is returned if the request ends here (step 7), else None."""
    if request.logical:
        for length in range(start + 1, len(after) + 1):
            if request.stops(after[:length]):
                return after[:length]
        return None
    return after if request.stops(after) else None


def _round(request: Request, committed: Prefix, chain: Chain) -> Iterator[tuple[Prefix, float]]:
    """What a round adds, and with which probability."""
    candidate = _candidate(request, committed, chain)
    whole = (*committed, *candidate)
    done = request.stops(whole)
    rows = [chain.row(whole[: len(committed) + at]) for at in range(len(candidate) + 1)]
    if any(math.isnan(p) for row in rows for p in row):
        # The engine samples all rows in one call, so one that is no law ends the request wherever it stands.
        raise Raised("RuntimeError")
    budget = request.horizon - len(committed) if request.capped else None
    for added, chance in first_mismatch(candidate, rows):
        if done and len(added) == len(candidate) + 1:
            yield candidate[:budget], chance
        else:
            yield added[:budget], chance


def _candidate(request: Request, committed: Prefix, chain: Chain) -> Prefix:
    ids = (*request.prompt, *committed)
    limit = len(request.prompt) + request.horizon
    if len(ids) + 1 == limit:
        return ()
    for found in lookup(ids, request.max_ngram, request.max_tokens, limit):
        kept = 0
        while kept < len(found) and chain.allows((*committed, *found[:kept]), found[kept], kept == 0):
            kept += 1
        if kept:
            return tuple(itertools.takewhile(lambda token: token not in request.ends, found[:kept]))
    return ()
