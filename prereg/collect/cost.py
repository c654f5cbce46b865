"""What a collection will cost, from the rates that its builds state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prereg.collect.progress import Cost
from prereg.collect.runtime import Build
from prereg.model.plan import Shard
from prereg.model.study import Protocol


def seconds_of(protocol: Protocol, shard: Shard, builds: Mapping[str, Build]) -> float | None:
    """What a shard takes on one core, or None if its build states no rate for its arm's role."""
    build = builds[protocol.configuration(shard.unit.configuration).build]
    role = next(arm.role for arm in protocol.arms if arm.id == shard.unit.arm)
    rate = build.requests_per_second.get(role, 0.0)
    return shard.requests / rate if rate > 0 else None


def cost_of(protocol: Protocol, shards: Iterable[Shard], builds: Mapping[str, Build], workers: int) -> Cost:
    """Draws, requests and seconds of these shards on that many workers.

    The seconds are None if a build states no rate for an arm's role.
    """
    draws = requests = 0
    seconds: float | None = 0.0
    for shard in shards:
        draws += shard.draws
        requests += shard.requests
        more = seconds_of(protocol, shard, builds)
        seconds = None if seconds is None or more is None else seconds + more
    return Cost(
        draws=draws, requests=requests, seconds=None if seconds is None else seconds / max(1, workers)
    )
