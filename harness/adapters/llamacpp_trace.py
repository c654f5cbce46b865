"""One llama-cpp-python request with the adapter's observers or without, by what can be seen from outside it.

The calls are the tokens that the model evaluated, by the engine's own count. The state is the engine's buffer
of tokens with their logits, and what processors and criteria hold when the request is over; where its random
numbers then stand cannot be seen, for they are inside the sampler.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

import llama_cpp

from harness.adapters.base import Entry, Trace
from harness.adapters.llamacpp_observe import unobserved
from harness.choices.llamacpp_state import hash_object
from harness.wire import JobError

if TYPE_CHECKING:
    from harness.adapters.llamacpp import Opened


def trace(opened: Opened, speculation: bool, seed: int, observed: bool) -> Trace:
    """See `harness.adapters.base.offered`; `seed` has 32 bits."""
    from harness.adapters.llamacpp import Answer

    engine, processors, criteria = (
        opened.engine(speculation),
        opened.features.fresh(),
        opened.features.criteria(),
    )
    llama = engine.llama
    llama_cpp.llama_perf_context_reset(llama._ctx.ctx)
    with contextlib.nullcontext() if observed else unobserved(llama, engine.drafter):
        try:
            answer = opened.request(engine, seed, processors, criteria)
        except (MemoryError, JobError):
            raise
        except Exception as error:  # a crash is compared like any other outcome
            record: list[Entry] | None = None if opened.texts is None else []
            answer = Answer(outcome={"crash": type(error).__name__}, record=record)
    counted = llama_cpp.llama_perf_context(llama._ctx.ctx)
    held = llama.input_ids[: llama.n_tokens].tobytes() + llama.scores[: llama.n_tokens].tobytes()
    hashed = hashlib.blake2b(held, digest_size=16)
    for part in (*processors, *criteria):
        hash_object(hashed, part)
    return Trace(
        outcome=answer.outcome,
        record=answer.record,
        calls=counted.n_p_eval + counted.n_eval,
        state=hashed.hexdigest(),
    )
