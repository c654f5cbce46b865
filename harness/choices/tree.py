"""The tree of an engine's random choices, walked by running the engine once for each path.

Nothing here knows an engine. A *program* is the engine with its random choices handed to a `Chooser`: each
time it would draw, it asks the chooser with the probabilities it holds. `Explorer` runs the program again and
again until every path has been taken, or until its budget is spent; then what is left is known exactly as a
*frontier* of subtrees with their mass. This is enumeration by re-execution, as in Goodman and Stuhlmueller,
"The Design and Implementation of Probabilistic Programming Languages" (dippl.org), chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Row: TypeAlias = npt.NDArray[np.float64]

Choices: TypeAlias = tuple[int, ...]
"""The index taken at each choice point of a path, in order."""

VARIANTS = 3
"""Ways to fill what cannot matter: 0 for the walk, the others for checking that it does not."""


class Diverged(BaseException):
    """A replayed prefix met other choice points than before: the program is no function of its choices.

    Not an `Exception`, so that no engine takes it for one of its own errors.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One choice, as it was put and made."""

    row: Row
    """Probability of each index; float64, sum 1."""

    taken: int
    kind: str
    """What the engine was choosing: `token`, `drafter`, `accept`, `residual`, `bonus`."""

    note: Any = None
    """Whatever the program wants to find again (the explorer does not look at it)."""


@dataclass(slots=True, kw_only=True)
class Chooser:
    """Makes the choices of one run: a given prefix first, then by a rule; and writes them down."""

    prefix: Choices = ()
    exclude: frozenset[int] = frozenset()
    """Indices not to take at the first choice after the prefix, as long as another is possible."""

    likeliest: bool = False
    """After the prefix take the likeliest index instead of the first possible one."""

    expand: bool = False
    """Every row of a block is a choice, also past the first mismatch."""

    variant: int = 0
    """How rows past the first mismatch are filled."""

    points: list[Point] = field(default_factory=list)
    filled: int = 0
    """How many rows were filled rather than chosen."""

    def choose(self, row: Row, kind: str, note: Any = None) -> int:
        """Answer one choice point; `row` is float64, nonnegative, with sum 1."""
        at = len(self.points)
        if at < len(self.prefix):
            taken = self.prefix[at]
            if not 0 <= taken < len(row) or row[taken] <= 0.0:
                raise Diverged(f"choice {at} of the prefix, {taken}, has become impossible")
        else:
            excluded = self.exclude if at == len(self.prefix) else frozenset()
            taken = self._pick(row, excluded)
        self.points.append(Point(row=row, taken=taken, kind=kind, note=note))
        return taken

    def _pick(self, row: Row, excluded: frozenset[int]) -> int:
        if excluded:
            rest = row.copy()
            rest[[index for index in excluded if index < len(row)]] = 0.0
            if rest.any():
                row = rest
        return int(np.argmax(row) if self.likeliest else np.flatnonzero(row)[0])

    def block(
        self, rows: Sequence[Row], candidate: Sequence[int], kind: str, notes: Sequence[Any] | None = None
    ) -> list[int]:
        """Answer a block that verifies `candidate`, row by row; one row more than candidate tokens.

        Rows up to and including the first that misses its candidate token are choices. Later rows cannot
        matter to an engine that stops there; they are filled, unless `expand` says otherwise.
        """
        taken: list[int] = []
        live = True
        for at, row in enumerate(rows):
            hoped = candidate[at] if at < len(candidate) else None
            if live or self.expand:
                taken.append(self.choose(row, kind, notes[at] if notes is not None else None))
            else:
                taken.append(self.fill(row, hoped))
            live = live and taken[-1] == hoped
        return taken

    def accepts(self, chances: Sequence[float], kind: str, notes: Sequence[Any] | None = None) -> list[bool]:
        """Answer acceptance draws with the given chances, in order: choices up to the first rejection."""
        rows = [np.array([chance, 1.0 - chance]) for chance in chances]
        return [taken == 0 for taken in self.block(rows, [0] * len(rows), kind, notes)]

    def fill(self, row: Row, hoped: int | None) -> int:
        """A possible index for a row that cannot matter.

        Variant 0 misses the candidate token if it can, 1 meets it if it can (an engine that counts matches
        anywhere in the block would notice), 2 takes the last possible index.
        """
        self.filled += 1
        possible = np.flatnonzero(row).tolist()
        if self.variant == 1 and hoped in possible:
            return int(hoped)
        if self.variant == 0:
            return int(next((index for index in possible if index != hoped), possible[0]))
        return int(possible[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run of a program came to."""

    outcome: Mapping[str, Any]
    counters: Mapping[str, int]
    digest: str
    """Over what the engine's stateful parts saw and held; equal for equal choices."""

    siblings: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Other indices of the last choice, each with the outcome that would follow, where the program can tell
    without being run."""


@dataclass(frozen=True, slots=True)
class Told(Mapping[int, Mapping[str, Any]]):
    """The outcomes of many siblings, each made when it is asked for: most are too light to be asked for."""

    indices: Sequence[int]
    outcome: Callable[[int], Mapping[str, Any]]

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        return self.outcome(index)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class Program(Protocol):
    """An engine whose random choices are made by a chooser."""

    def run(self, chooser: Chooser) -> Run:
        """Run once. Everything random must go through `chooser`, and nothing else may differ."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """The end of one path."""

    choices: Choices
    kinds: tuple[str, ...]
    p: tuple[float, ...]
    """Probability of each choice; at each node of the tree they sum to 1 over its children."""

    weight: float
    """Product of `p` from the left."""

    outcome: Mapping[str, Any]
    counters: Mapping[str, int]
    digest: str
    closed: bool
    """Told from the row of its last choice, without a run of its own; its digest is that of the run."""

    filled: int
    """Rows that were filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtree:
    """All paths that start with `choices` and go on with none of `exclude`."""

    choices: Choices
    exclude: frozenset[int] = frozenset()
    weight: float = 1.0
    """Its mass; for a subtree that has not been reached, an upper bound."""


def normalised(numbers: Iterable[float] | npt.NDArray[Any]) -> Row | None:
    """`numbers` (taken to float64) divided by their correctly rounded sum, or None if they are no law."""
    row = np.asarray(numbers, dtype=np.float64)
    if row.ndim != 1 or not row.size or not np.isfinite(row).all() or (row < 0.0).any():
        return None
    total = math.fsum(row.tolist())
    return None if total <= 0.0 else row / total


def weigh(points: Sequence[Point], base: float = 1.0) -> float:
    """Product of the probabilities of what was taken."""
    weight = base
    for point in points:
        weight *= float(point.row[point.taken])
    return weight
