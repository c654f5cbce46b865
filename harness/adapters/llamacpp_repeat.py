"""How far a row depends on the way in which llama-cpp-python comes to evaluate its prefix.

The engine computes a block of tokens by other kernels than a single one, and rounds what goes into a product
with quantised or half-precision weights. So the last bit of a sum may move an activation to the next step,
and that may show. The two arms evaluate in different ways: here some prefixes are evaluated in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from harness.adapters.llamacpp import Opened

TOKENS = 8
"""Tokens after the prompt whose rows are compared: the likeliest each time."""

Rows = npt.NDArray[np.float64]


def repeatability(opened: Opened) -> dict[str, float]:
    """The largest total variations of two rows after the same prefix, evaluated in different ways.

    `prompt`: after the prompt, which both arms evaluate at once; `later`: after some tokens more.

    The ways are those of the arms: after the prompt one token at a time; in blocks of 2 and more, up to what
    the drafter can propose and one; and from nothing, with the logits of all positions kept or not.
    """
    off = opened.off.llama
    on = off if opened.on is None else opened.on.llama
    prompt = list(opened.prompt)
    alone = [_evaluated(off, prompt)[-1]]
    tokens: list[int] = []
    for _ in range(TOKENS):
        tokens.append(int(alone[-1].argmax()))
        alone.append(_evaluated(off, tokens[-1:], fresh=False)[-1])
    prompted = _distance(_evaluated(on, prompt)[-1:], alone[:1])
    largest = 0.0
    widest = 1 if opened.drafter is None else 1 + int(opened.drafter["max_tokens"])
    for width in range(2, widest + 1):
        _evaluated(on, prompt)
        for at in range(0, len(tokens), width):
            block = _evaluated(on, tokens[at : at + width], fresh=False)
            largest = max(largest, _distance(block, alone[at + 1 : at + 1 + len(block)]))
    for llama in (off, on):
        for length in range(TOKENS // 2, len(tokens) + 1, TOKENS // 2):
            row = _evaluated(llama, [*prompt, *tokens[:length]])[-1]
            largest = max(largest, _distance(row[None], alone[length : length + 1]))
        llama.reset()
    return {"prompt": prompted, "later": largest}


def _evaluated(llama: Any, tokens: Sequence[int], fresh: bool = True) -> Rows:
    """Softmax rows of an evaluation: one for each token, or only the last; (n, V)."""
    if fresh:
        llama.reset()
    type(llama).eval(llama, list(tokens))
    shape = (len(tokens) if llama._logits_all else 1, llama.n_vocab())
    logits = np.ctypeslib.as_array(llama._ctx.get_logits(), shape=shape).astype(np.float64)
    rows = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), dtype=np.float64)


def _distance(some: Rows, others: Sequence[Rows]) -> float:
    """The largest total variation of rows at the same place."""
    pairs = zip(some, others, strict=True)
    return max(float(np.abs(a - b).sum() / 2) for a, b in pairs)
