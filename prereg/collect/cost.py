"""What a collection will cost, from the rates that its builds state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prereg.collect.progress import Cost
from prereg.collect.runtime import Build
from prereg.model.plan import Shard
from prereg.model.study import Protocol


def cost_of(protocol: Protocol, shards: Iterable[Shard], builds: Mapping[str, Build], workers: int) -> Cost:
    """Draws, requests and seconds of these shards on that many workers.

    The seconds are None if a build states no rate for an arm's role.
    """
    draws = requests = 0
    seconds: float | None = 0.0
    roles = {arm.id: arm.role for arm in protocol.arms}
    for shard in shards:
        draws += shard.draws
        requests += shard.requests
        build = builds[protocol.configuration(shard.unit.configuration).build]
        rate = build.requests_per_second.get(roles[shard.unit.arm])
        if rate is None or rate <= 0:
            seconds = None
        elif seconds is not None:
            seconds += shard.requests / rate
    return Cost(
        draws=draws, requests=requests, seconds=None if seconds is None else seconds / max(1, workers)
    )
