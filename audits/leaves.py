"""Step 7 for a unit of an exact stage: its lines are the leaves of a tree of choices.

A line that has the one layout that canonical bytes allow is read by a pattern and its parts; any other line
is taken apart slowly, to say what is wrong, or to find that nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from audits.fault import Fault
from audits.jsonc import canonical, parse_machine, read_number
from audits.schema import Schema
from audits.study import Unit

_COUNT = rb"(?:0|[1-9][0-9]{0,14})"
_LINE = re.compile(
    rb'\{"attempt":([1-9]),"choices":\[((?:%(n)s(?:,%(n)s)*)?)\],"closed":(true|false),"counters":(\{[^{}]*\}),'
    rb'"digest":"[0-9a-f]{32,64}","filled":(%(n)s),"kinds":"([tdarb]*)","leaf":(%(n)s),"outcome":(\{.*\}),'
    rb'"p":\[([^\[\]"]*)\],"seal":"([0-9a-f]{64})","shard":(%(n)s),"unit":"([a-z0-9_.-]*)"\}' % {b"n": _COUNT}
)
_PLAIN = re.compile(
    rb'\{"finish":(?:null|"[A-Za-z0-9_. -]{0,100}"),"tokens":\[(?:%(n)s(?:,%(n)s)*)?\]\}' % {b"n": _COUNT}
)
"""An outcome that is canonical and of the schema whatever it says, if it is not too long."""
_LONGEST = 100_000
"""The most choices of a leaf, by its schema."""

Part = Callable[[str, bytes], dict[str, Any] | None]
"""Reads ``counters`` or ``outcome`` from their bytes; None if they are not canonical and of the schema."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One finished request."""

    choices: list[int]
    kinds: str
    p: list[float]
    outcome: bytes
    """The outcome's canonical bytes."""
    counters: dict[str, int]
    closed: bool
    filled: int
    """Rows past the first mismatch that were filled."""

    @property
    def weight(self) -> float:
        """The product of its probabilities, from the left."""
        weight = 1.0
        for p in self.p:
            weight *= p
        return weight


@dataclass(slots=True)
class Tree:
    """A unit's authenticated leaves, and what its meta says of them."""

    leaves: list[Leaf] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    """``tree`` of the shard's meta."""


class LeafReader:
    """Reads the leaf lines of shards."""

    def __init__(self, schema: Schema, seal: str, part: Part) -> None:
        """``seal`` is the seal digest every line must carry."""
        self._schema = schema
        self._seal = seal
        self._part = part
        self._numbers: dict[bytes, float | None] = {}

    def _probability(self, text: bytes) -> float | None:
        """A number in (0, 1] from its canonical bytes, or None."""
        if text not in self._numbers:
            value = read_number(text)
            self._numbers[text] = float(value) if value is not None and 0 < value <= 1 else None
        return self._numbers[text]

    def _quickly(self, line: bytes, unit: Unit, at: int, attempt: int) -> Leaf | None:
        """The leaf of a line in the expected layout; None says only that a slower look is needed."""
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        tried, choices, closed, counters, filled, kinds, leaf, outcome, ps, seal, shard, name = match.groups()
        planned = (b"%d" % attempt, b"%d" % at, self._seal.encode(), b"0", unit.id.encode())
        sums = self._part("counters", counters)
        if (tried, leaf, seal, shard, name) != planned or sums is None:
            return None
        if len(outcome) > _LONGEST or not _PLAIN.fullmatch(outcome):
            known = self._part("outcome", outcome)
            if known is None or "value" in known:
                return None
        probabilities = [self._probability(text) for text in ps.split(b",")] if ps else []
        taken = [int(text) for text in choices.split(b",")] if choices else []
        good = [p for p in probabilities if p is not None]
        if len(good) < len(probabilities) or max(len(good), len(taken), len(kinds)) > _LONGEST:
            return None
        return Leaf(taken, kinds.decode(), good, outcome, sums, closed == b"true", int(filled))

    def _slowly(self, line: bytes, unit: Unit, at: int, place: str, attempt: int) -> Leaf:
        try:
            value = parse_machine(line + b"\n")
            self._schema.check(value)
        except Fault as fault:
            raise fault.at(place) from None
        planned = {"seal": self._seal, "unit": unit.id, "shard": 0, "attempt": attempt, "leaf": at}
        for key, wanted in planned.items():
            if value[key] != wanted:
                what = f"is {canonical(value[key]).decode()}, planned as {canonical(wanted).decode()}"
                raise Fault(what, file=place, pointer=f"/{key}")
        return Leaf(
            value["choices"], value["kinds"], [float(p) for p in value["p"]], canonical(value["outcome"]),
            value["counters"], value["closed"], value["filled"],
        )  # fmt: skip

    def tree(
        self, unit: Unit, lines: bytes, meta: dict[str, Any], files: tuple[str, str], attempt: int = 1
    ) -> Tree:
        """The leaves of a unit's shard; raises at the first line that is not as the page says.

        ``meta`` is the shard's, and ``files`` names the lines' file and the meta's.
        """
        file, meta_file = files
        _check_end(lines, file)
        count = lines.count(b"\n")
        if count != meta["draws"]:
            what = f"is {meta['draws']}; there are {count} leaves"
            raise Fault(what, file=meta_file, pointer="/draws")
        tree = Tree(meta=meta["tree"], leaves=[*self.leaves(unit, lines, file, attempt)])
        _check_admission(tree, meta_file)
        return tree

    def leaves(self, unit: Unit, lines: bytes, file: str, attempt: int) -> Iterator[Leaf]:
        """The leaves of one result, each checked against the page and the one before it."""
        _check_end(lines, file)
        before: Leaf | None = None
        for at, line in enumerate(lines[:-1].split(b"\n") if lines else ()):
            place = f"{file} line {at + 1}"
            leaf = self._quickly(line, unit, at, attempt) or self._slowly(line, unit, at, place, attempt)
            _check_leaf(leaf, before, unit, place)
            yield leaf
            before = leaf


def _check_end(lines: bytes, file: str) -> None:
    if lines and not lines.endswith(b"\n"):
        raise Fault("its last line is cut short", file=file)


def _check_leaf(leaf: Leaf, before: Leaf | None, unit: Unit, place: str) -> None:
    if not len(leaf.choices) == len(leaf.kinds) == len(leaf.p):
        what = f"{len(leaf.choices)} choices, {len(leaf.kinds)} kinds and {len(leaf.p)} probabilities"
        raise Fault(what, file=place, pointer="/choices")
    if "a" in leaf.kinds:
        for i, kind in enumerate(leaf.kinds):
            if kind == "a" and leaf.choices[i] > 1:
                what = f"an acceptance has index 0 or 1, not {leaf.choices[i]}"
                raise Fault(what, file=place, pointer=f"/choices/{i}")
    if before is not None and before.choices >= leaf.choices:
        what = "the same choices as the line before" if before.choices == leaf.choices else "out of order"
        raise Fault(what, file=place, pointer="/choices")
    counters = leaf.counters
    if not unit.drafter and any(counters.values()):
        raise Fault("counters are not 0 where nothing proposes", file=place, pointer="/counters")
    for key in ("verifications", "accepted"):
        if counters[key] > counters["proposals"]:
            what = f"is {counters[key]}, more than the {counters['proposals']} proposals"
            raise Fault(what, file=place, pointer=f"/counters/{key}")


def _check_admission(tree: Tree, file: str) -> None:
    """What the meta says of the tree does not contradict itself or the leaves."""
    admission = tree.meta["admission"]
    for name, check in admission.items():
        wrong = check["unaccounted"] if name == "randomness" else check["differences"]
        if check["ok"] != (wrong == 0):
            key = "unaccounted" if name == "randomness" else "differences"
            what = f"is {str(check['ok']).lower()}, with {wrong} {key}"
            raise Fault(what, file=file, pointer=f"/tree/admission/{name}/ok")
    closed = sum(leaf.closed for leaf in tree.leaves)
    if closed and admission["closed"]["reopened"]:
        what = f"reopened, and {closed} leaves are marked closed"
        raise Fault(what, file=file, pointer="/tree/admission/closed/reopened")
    if admission["closed"]["closed"] != closed:
        what = f"is {admission['closed']['closed']}; {closed} leaves are marked closed"
        raise Fault(what, file=file, pointer="/tree/admission/closed/closed")
    eligible = sum(leaf.filled > 0 and not leaf.closed for leaf in tree.leaves)
    if admission["refill"]["eligible"] != eligible:
        what = f"is {admission['refill']['eligible']}; {eligible} leaves that are not closed have rows filled"
        raise Fault(what, file=file, pointer="/tree/admission/refill/eligible")
