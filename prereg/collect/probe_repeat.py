"""How far an engine's rows depend on the way in which it comes to evaluate a prefix, before a probe."""

from __future__ import annotations

from prereg.collect.choices import SILENCE, Walk, opened_lanes
from prereg.collect.worker import WorkerRefused


def repeatability(walk: Walk) -> dict[str, float] | None:
    """The largest total variations of two rows after the same prefix, measured by the engine's adapter.

    `prompt` is that after the prompt, `later` that after more tokens. None if the adapter does not
    tell. Raises as `prereg.collect.choices.walk_arms` does.
    """
    with opened_lanes(walk, str(walk.configuration["build"]), 1) as (lanes, _):
        try:
            found = lanes.workers[0].call("repeatability", silence=SILENCE)
            return {name: float(found[name]) for name in ("prompt", "later")}
        except WorkerRefused as refused:
            if refused.code == "unsupported":
                return None
            raise
