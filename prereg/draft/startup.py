"""What is done beside the draws and walks that the cost counts. How long it takes, nobody knows before."""

from __future__ import annotations

from dataclasses import dataclass

from prereg.model.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """The work of a rehearsal, counted: `check`, `seal` and `amend` each do all of it once.

    A collection starts its workers and opens its configurations anew: each worker one for each build that it
    comes to, and each configuration that it is given.
    """

    builds: int
    """Engine builds: a worker is started for each."""
    configurations: int
    """Configurations that are opened, their models loaded."""
    requests: int
    """Arms that are tried by one request."""
    walks: int
    """Arms whose walk is begun."""
    observed: int
    """Arms whose requests are made with the counting observers and without."""


def startup_of(study: Study) -> Startup:
    """What the rehearsal of a study does."""
    protocol = study.protocol
    arms = len(protocol.arms)
    speculating = sum(arm.speculation for arm in protocol.arms)
    watched = [c for c in protocol.configurations if c.adapter != "command" and c.drafter is not None]
    return Startup(
        builds=len({c.build for c in protocol.configurations}),
        configurations=len(protocol.configurations),
        requests=arms * len(protocol.drawn()),
        walks=arms * len(protocol.walked()),
        observed=speculating * len(watched),
    )
