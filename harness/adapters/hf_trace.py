"""One Transformers request with the adapter's observers or without, by what can be seen from outside.

Without: the model is for that request an instance of the engine's own class, so that `generate()` finds no
observer, and prepares its configuration itself. In both cases the calls of the model are counted by a hook
that torch offers for it, and the state is torch's random numbers and what a user's own classes hold when the
request is over.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import torch

from harness.adapters.base import Entry, Outcome, Trace
from harness.choices.hf_state import hash_whole
from harness.wire import JobError

if TYPE_CHECKING:
    from harness.adapters.hf import Opened


def trace(opened: Opened, speculation: bool, seed: str, observed: bool) -> Trace:
    """See `harness.adapters.base.offered`."""
    from harness.adapters.hf import sequences

    model, watched, calls = opened.model, type(opened.model), 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    config, own = opened.config(speculation, 1), opened.own.arguments()
    counting = model.register_forward_hook(count)
    record: list[Entry] | None = None if opened.rows is None else []
    opened.probe.clear()
    torch.manual_seed(int(seed))
    try:
        if not observed:
            model.__class__ = watched.__mro__[1]
        returned = opened.call(config, speculation, own)
    except (MemoryError, JobError):
        raise
    except Exception as error:  # a crash is compared like any other outcome
        outcome: Outcome = {"crash": type(error).__name__}
    else:
        (sequence,) = sequences(returned).tolist()
        outcome = opened.outcome(tuple(sequence[len(opened.prompt) :]))
        record = opened.record(returned, 0, None)
    finally:
        model.__class__ = watched
        counting.remove()
    hashed = hashlib.blake2b(torch.get_rng_state().numpy().tobytes(), digest_size=16)
    for instances in own.values():
        for instance in instances:
            hash_whole(hashed, instance)
    return Trace(outcome=outcome, record=record, calls=calls, state=hashed.hexdigest())
