"""Shards that would be larger than a file of a study may be, told before anything is drawn (section 1)."""

from __future__ import annotations

from collections.abc import Iterator

from prereg.draft.findings import Finding
from prereg.model.study import Configuration, Study
from prereg.store.files import MAX_FILE

LINE = 280
"""Bytes of a record's line beside its outcome: the names of its members, the seal, numbers, the unit."""
VALUE = 40
"""Bytes guessed for the value of a command."""
TOKEN = 7
"""Bytes of a token's id and its comma, for vocabularies of up to a million."""
BESIDE = 20
"""Bytes of a number that the engine returned beside a token, such as a log-probability, and its comma."""
ENTRY = 25
"""Bytes of an entry of such a record without its tokens and values."""


def bytes_per_draw(configuration: Configuration) -> int:
    """What one line of its records takes, guessed from the plan: every draw is as long as its horizon."""
    if configuration.horizon is None:
        return LINE + VALUE
    told = 0 if configuration.records is None else ENTRY + configuration.records.told * (TOKEN + BESIDE)
    return LINE + configuration.horizon * (TOKEN + told)


def shard_size_findings(study: Study) -> Iterator[Finding]:
    """Warnings for each arm and configuration whose shards are likely to grow beyond the limit."""
    for arm, sampling in study.protocol.sampling.items():
        for configuration in study.protocol.drawn():
            own = sampling.of_build(configuration.build)
            each = bytes_per_draw(configuration)
            draws = own.rows * min(own.shard_requests, own.requests)
            if draws * each <= MAX_FILE:
                continue
            place = f"/builds/{configuration.build}" if configuration.build in (sampling.builds or {}) else ""
            fits = MAX_FILE // (each * own.rows)
            yield Finding(
                severity="warning",
                what=(
                    f"{configuration.id}, {arm}: a shard of {draws:,} draws would have about "
                    f"{draws * each / 2**20:,.0f} MiB, at some {each:,} bytes a draw; more than "
                    f"{MAX_FILE / 2**20:,.0f} MiB are refused when it is drawn"
                ),
                where=f"protocol.json#/sampling/{arm}{place}/shard_requests",
                next_step=f"lower shard_requests to {fits:,}" if fits else "lower rows, and shard_requests",
            )
