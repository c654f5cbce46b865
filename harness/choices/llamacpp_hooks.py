"""What stands between llama-cpp-python and the chooser while one request runs.

Two methods of the engine's `LlamaSampler` are replaced: `add_dist`, which ends the chain with the sampler
that draws, and `sample`, which runs the chain. The rest of the chain is the engine's own. What ends it now
lets the engine's own drawing sampler turn a copy of what is left into probabilities, and sets `selected`.

Nothing can be raised through the engine's C code: an exception in there would be printed and forgotten. So
the replaced sampler keeps it, and `sample` raises it when the chain is back.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt
from llama_cpp import _internals

from harness.adapters.llamacpp_kernel import TOKEN_DATA
from harness.adapters.llamacpp_observe import Probe
from harness.choices.note import Call, Note
from harness.choices.tree import Chooser, normalised


class Unaccounted(BaseException):
    """The engine drew at random past the chooser. Not an `Exception`, so that the engine cannot catch it."""


@dataclass(slots=True, kw_only=True)
class Request:
    """What is known of the request that is running."""

    chooser: Chooser | None
    """None lets the engine draw, with all wrappers in place."""

    trace: list[Call] | None = None
    stops: list[Call] | None = None
    hashed: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    calls: int = 0
    evaluation: int = 0
    """The evaluation whose rows are being sampled."""

    row: int = 0
    """How many of its rows have been."""

    live: bool = True
    """Every row so far met its candidate token."""

    drawn: int = 0
    """How often the end of the chain was reached."""

    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Installs the replacements of one request; `stack` takes them off again."""

    request: Request
    probe: Probe
    prompt: tuple[int, ...]
    size: int
    """Of the vocabulary."""

    dist: Any
    """A drawing sampler of the engine's own, for its probabilities."""

    stack: contextlib.ExitStack

    def samplers(self) -> None:
        """Replace the two methods."""
        kind, request = _internals.LlamaSampler, self.request
        sample = kind.sample

        def add_dist(sampler: Any, seed: int) -> None:
            drawing = None
            if request.chooser is None:
                drawing = llama_cpp.llama_sampler_init_dist(seed)
                self.stack.callback(llama_cpp.llama_sampler_free, drawing)
            sampler.add_custom(lambda array: self._end(array, drawing))

        def watched(sampler: Any, ctx: Any, idx: int = -1) -> int:
            drawn = request.drawn
            token: int = sample(sampler, ctx, idx)
            if request.error is not None:
                raise request.error
            if request.drawn == drawn and request.chooser is not None and not self._is_greedy(sampler):
                raise Unaccounted("a token was drawn past the chooser")
            return token

        self._set(kind, "add_dist", add_dist)
        self._set(kind, "sample", watched)

    @staticmethod
    def _is_greedy(sampler: Any) -> bool:
        """Whether the chain ends without drawing."""
        last = llama_cpp.llama_sampler_chain_n(sampler.sampler) - 1
        end = llama_cpp.llama_sampler_chain_get(sampler.sampler, last)
        return bool(llama_cpp.llama_sampler_name(end) == b"greedy")

    def _end(self, pointer: Any, drawing: Any) -> None:
        request, array = self.request, pointer.contents
        request.drawn += 1
        try:
            if request.chooser is None:
                llama_cpp.llama_sampler_apply(drawing, pointer)
            else:
                array.selected = self._choose(array, request.chooser)
        except BaseException as error:
            request.error = error
            array.selected = 0

    def _choose(self, array: Any, chooser: Chooser) -> int:
        cells = _cells(array).copy()
        handed = llama_cpp.llama_token_data_array(
            data=cells.ctypes.data_as(llama_cpp.llama_token_data_p),
            size=len(cells),
            selected=-1,
            sorted=array.sorted,
        )
        llama_cpp.llama_sampler_apply(self.dist, ctypes.byref(handed))
        probabilities: npt.NDArray[np.float64] = np.zeros(self.size)
        probabilities[cells["id"]] = cells["p"]
        row = normalised(probabilities)
        if row is None:
            return int(handed.selected)  # no law: what the engine does with that is its own affair
        self.request.hashed.update(row.tobytes())
        taken = self._taken(row, chooser)
        return int(np.flatnonzero(cells["id"] == taken)[0])

    def _taken(self, row: npt.NDArray[np.float64], chooser: Chooser) -> int:
        """The next row of an evaluation. One after the first mismatch can only matter to a wrong engine."""
        request, probe = self.request, self.probe
        if request.evaluation != probe.evaluations:
            request.evaluation, request.row, request.live = probe.evaluations, 0, True
        at, candidate = request.row, probe.candidate
        hoped = candidate[at] if at < len(candidate) else None
        request.row += 1
        if request.live or chooser.expand:
            prefix = (*probe.tokens[: probe.position], *candidate[:at])
            note = Note(prefix=prefix, candidate=hoped, row=at, rows=at + 1, calls=request.calls)
            taken = chooser.choose(row, "token", note)
        else:
            taken = chooser.fill(row, hoped)
        request.live = request.live and taken == hoped
        return taken

    def processors(self, parts: Sequence[Any]) -> list[Any]:
        """The same processors, with a note of every call."""
        return [self._watched(part, self.request.trace, 1) for part in parts]

    def criteria(self, parts: Sequence[Any]) -> list[Any]:
        """The same stopping criteria, with a note of every call."""
        return [self._watched(part, self.request.stops, 0) for part in parts]

    def _watched(self, part: Any, trace: list[Call] | None, count: int) -> Any:
        request = self.request

        def watched(input_ids: Any, scores: Any) -> Any:
            request.calls += count
            request.hashed.update(type(part).__name__.encode() + input_ids.tobytes())
            if trace is not None:
                trace.append(self._call(part, input_ids))
            result = part(input_ids, scores)
            told = result.tobytes() if isinstance(result, np.ndarray) else repr(result).encode()
            request.hashed.update(told)
            return result

        return watched

    def _call(self, part: Any, input_ids: Any) -> Call:
        tokens = tuple(input_ids.tolist())
        continues = tokens[: len(self.prompt)] == self.prompt
        return Call(
            model="main",
            phase="verify",
            processor=type(part).__name__,
            tokens=tokens[len(self.prompt) :] if continues else tokens,
            continues=continues,
            committed=self.probe.position,
        )

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self.stack.callback(setattr, owner, name, vars(owner)[name])
        setattr(owner, name, value)


def _cells(array: Any) -> npt.NDArray[Any]:
    """The cells of a token data array, in place."""
    place = ctypes.addressof(array.data.contents)
    return np.frombuffer((llama_cpp.llama_token_data * array.size).from_address(place), dtype=TOKEN_DATA)
