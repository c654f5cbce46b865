"""What a collection will cost, from the rates that its builds state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prereg.collect.progress import Cost
from prereg.collect.runtime import Build
from prereg.model.plan import Shard
from prereg.model.study import Study
from prereg.stats.trees import expected_runs


def runs_of(study: Study, shard: Shard) -> int | None:
    """Engine runs of an exact unit, about; None where nothing tells."""
    assert study.protocol.exact is not None
    return expected_runs(study.protocol.exact, study.events.configurations[shard.unit.configuration])


def leaves_of(study: Study, shard: Shard) -> int:
    """Leaves of an exact unit, about, for the time left: the oracle's outcomes, else its runs."""
    reference = study.events.configurations[shard.unit.configuration].reference
    return len(reference) if reference else runs_of(study, shard) or 1


def seconds_of(study: Study, shard: Shard, builds: Mapping[str, Build]) -> float | None:
    """What a shard takes on one core, or None if its build states no rate or its size is not known.

    A walk's runs are requests of one row, so their rate is that of the test arm, whichever arm is walked.
    """
    protocol = study.protocol
    build = builds[protocol.configuration(shard.unit.configuration).build]
    exact = shard.channel == "exact"
    role = "test" if exact else next(arm.role for arm in protocol.arms if arm.id == shard.unit.arm)
    rate = build.requests_per_second.get(role, 0.0)
    requests = runs_of(study, shard) if exact else shard.requests
    return requests / rate if rate > 0 and requests is not None else None


def cost_of(study: Study, shards: Iterable[Shard], builds: Mapping[str, Build], workers: int) -> Cost:
    """Draws, requests, trees and seconds of these shards on that many workers.

    The seconds are None if a build states no rate for an arm's role, or a tree's size is not known.
    """
    draws = requests = trees = 0
    runs: int | None = 0
    seconds: float | None = 0.0
    for shard in shards:
        if shard.channel == "exact":
            trees += 1
            size = runs_of(study, shard)
            runs = None if runs is None or size is None else runs + size
        else:
            draws += shard.draws
            requests += shard.requests
        more = seconds_of(study, shard, builds)
        seconds = None if seconds is None or more is None else seconds + more
    return Cost(
        draws=draws,
        requests=requests,
        trees=trees,
        runs=runs,
        seconds=None if seconds is None else seconds / max(1, workers),
    )
