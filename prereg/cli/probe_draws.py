"""`prereg probe --draws`: both arms drawn from fresh seeds and compared by the rules of channel S."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.cli.probe_options import Asked
    from prereg.collect.probe_draws import Counted
    from prereg.collect.worker import Worker
    from prereg.model.law import Family

TINY_ROWS, CHECKPOINT_ROWS = 250, 4
"""Draws of one request of the off arm: a trained model's rows are wide, and each has a cache."""

FIRST_TOKENS = 50
"""First tokens that get an event of their own where there is no reference law."""


def run_draws(asked: Asked, draws: int, seed_base: int, as_json: bool) -> dict[str, Any]:
    """Draw, decide, show; return the JSON value."""
    from prereg.analyse.probe_draws import decide_draws, unit
    from prereg.cli.probe_show import show_draws
    from prereg.cli.progress import renderer
    from prereg.collect.choices import opened_lanes
    from prereg.collect.probe_draws import Draws, draw_arms
    from prereg.collect.progress import Cost
    from prereg.collect.split_checks import ends_of
    from prereg.draft.rules import conformance_protocol, documented_rules

    if draws < 1:
        raise UsageError(f"{draws} draws show nothing", where="--draws", next_step="--draws 2000")
    if not 0 <= seed_base < 2**63:
        raise UsageError(f"{seed_base} is no first seed", where="--seed-base")
    walk = asked.walk
    rows = CHECKPOINT_ROWS if asked.is_checkpoint else TINY_ROWS
    wanted = Draws(draws=draws, seed_base=seed_base, rows=min(rows, draws))
    bar = renderer()
    with opened_lanes(walk, str(walk.configuration["build"]), walk.processes) as (lanes, prompt):
        family = _family(lanes.workers[0], asked)
        ends = ends_of(lanes.workers[0])
        bar.begin(2 * draws, 0, Cost(draws=2 * draws, requests=wanted.requests, seconds=None))
        try:
            counted = draw_arms(wanted, lanes, bar.advance)
        finally:
            bar.end()
    features = walk.configuration["features"]
    decision = decide_draws(
        conformance_protocol("probe"),
        walk.configuration,
        family,
        documented_rules(features, asked.horizon, prompt, walk.model, ends),
        {unit(arm): _tally(unit(arm), found) for arm, found in counted.items()},
        draws,
    )
    seeds = f"{seed_base} to {seed_base + wanted.requests - 1}"
    if not as_json:
        show_draws(decision, seeds, family.reference is not None)
    return _as_value(asked, decision, prompt, family, seed_base, wanted.requests)


def _family(worker: Worker, asked: Asked) -> Family:
    """The events, fixed before any draw: from the oracle's law, or from the likeliest first tokens."""
    from prereg.collect.probe_draws import first_tokens, reference_of
    from prereg.draft.family import family
    from prereg.model.law import CrashEvent, Family, LengthEvent, LongerEvent, PrefixEvent, ViolationEvent

    if not asked.is_checkpoint:
        return family(reference_of(worker), horizon=asked.horizon)
    tokens = first_tokens(worker)[:FIRST_TOKENS]
    return Family(
        reference=None,
        events=(
            *(PrefixEvent(id=f"prefix-{token}", tokens=(token,)) for token in tokens),
            *(LengthEvent(id=f"length-{n}", equals=n) for n in range(asked.horizon + 1)),
            LongerEvent(id=f"longer-than-{asked.horizon}", than=asked.horizon),
            CrashEvent(id="crash"),
            ViolationEvent(id="violation"),
        ),
    )


def _tally(name: str, counted: Counted) -> Any:
    from prereg.analyse.tally import Tally
    from prereg.model.law import Crashed

    outcomes = tuple(counted.outcomes.items())
    return Tally(
        unit=name,
        draws=counted.draws,
        crashes=sum(n for outcome, n in outcomes if isinstance(outcome, Crashed)),
        outcomes=outcomes,
        proposals=counted.proposals,
        verifications=counted.verifications,
        accepted=counted.accepted,
    )


def _as_value(
    asked: Asked, decision: Any, prompt: list[int], family: Family, seed_base: int, requests: int
) -> dict[str, Any]:
    from prereg.codec.convert import to_json

    value: dict[str, Any] = {
        "exploratory": True,
        "channel": "draws",
        "configuration": dict(asked.walk.configuration),
        "model": dict(asked.walk.model),
        "prompt": prompt,
        "alpha": 0.05,
        "threshold": 0.01,
        "verdict": decision.verdict,
        "reason": ", ".join(decision.reasons),
        "gap": decision.D,
        "event": decision.D_event,
        "reference": family.reference is not None,
        "seeds": {"first": str(seed_base), "end": str(seed_base + requests)},
    }
    value["decision"] = to_json(decision)
    value["draws"] = value["decision"]["draws"]
    return value
