"""Which shards a sealed protocol asks for: fixed by the plan, never by the number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prereg.model.study import Channel, Protocol, SeedBlock, Seeds, Unit

EXACT_REQUESTS = 4
"""Seeds of an exact unit: the requests of its check that the intercepts disturb nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The records of one contiguous seed range of one unit."""

    unit: Unit
    index: int
    first_request: int
    """Number of the shard's first request within its unit."""
    requests: int
    rows: int
    first_seed: int
    channel: Channel = "draws"

    @property
    def name(self) -> str:
        return f"{self.index:05d}"

    @property
    def draws(self) -> int:
        """Draws that the plan asks for; 0 for a tree, whose number of leaves nobody knows before."""
        return self.requests * self.rows if self.channel == "draws" else 0

    @property
    def first_draw(self) -> int:
        return self.first_request * self.rows

    def seeds(self) -> list[int]:
        """The seeds of the shard's requests, in order."""
        return list(range(self.first_seed, self.first_seed + self.requests))


def requests_of(protocol: Protocol, unit: Unit) -> int:
    """How many seeds a unit needs. Raises KeyError for an arm without sampling."""
    return EXACT_REQUESTS if protocol.is_exact(unit) else protocol.sampling_of(unit).requests


def block_of(seeds: Seeds, unit: Unit) -> SeedBlock:
    """The seed block of a unit. Raises KeyError if there is none."""
    for block in seeds.blocks:
        if block.unit == unit.id:
            return block
    raise KeyError(unit.id)


def shards_of(protocol: Protocol, seeds: Seeds, unit: Unit) -> Iterator[Shard]:
    """The shards of one unit, in order."""
    start = block_of(seeds, unit).start
    if protocol.is_exact(unit):
        yield Shard(
            unit=unit,
            index=0,
            first_request=0,
            requests=EXACT_REQUESTS,
            rows=1,
            first_seed=start,
            channel="exact",
        )
        return
    sampling = protocol.sampling_of(unit)
    for index in range(sampling.shards):
        first = index * sampling.shard_requests
        yield Shard(
            unit=unit,
            index=index,
            first_request=first,
            requests=min(sampling.shard_requests, sampling.requests - first),
            rows=sampling.rows,
            first_seed=start + first,
        )


def plan(protocol: Protocol, seeds: Seeds) -> list[Shard]:
    """Every shard of the study, in protocol order."""
    return [shard for unit in protocol.units() for shard in shards_of(protocol, seeds, unit)]
