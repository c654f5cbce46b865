"""`prereg probe`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, number, say, table
from prereg.errors import UsageError

if TYPE_CHECKING:
    from prereg.model.law import Event, Mass
    from prereg.model.tree import ExactResult, Tree

EXPLAINED = 10
"""Failing paths that are handed to the engine side to be explained, at most."""


@app.command(
    epilog="Example: prereg probe --build hf-5.17.0 --set guidance_scale=1.5   ·   "
    "prereg probe --build hf-5.17.0 --set top_k=3 --drafter assistant --budget-seconds 60"
)
def probe(
    build: Annotated[str, typer.Option(help="The engine build, see `prereg build --list`.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the engine, its value as JSON; may be repeated.",
        ),
    ] = None,
    prompt: Annotated[
        str, typer.Option(help="The prompt, in letters of the tiny model's vocabulary.")
    ] = "abcdabcdab",
    prompt_ids: Annotated[str | None, typer.Option(help="The prompt as token ids: 0,1,2,3.")] = None,
    horizon: Annotated[int, typer.Option(help="New tokens at most.")] = 3,
    drafter: Annotated[str, typer.Option(help="prompt-lookup or assistant.")] = "prompt-lookup",
    model_seed: Annotated[str, typer.Option(help="Seed of the tiny model's weights.")] = "2198",
    initializer_range: Annotated[float, typer.Option(help="Scale of its weights: small is flat.")] = 0.4,
    budget_runs: Annotated[int | None, typer.Option(help="Engine runs an arm at most.")] = None,
    budget_seconds: Annotated[float | None, typer.Option(help="Seconds an arm at most.")] = None,
    tolerance: Annotated[float, typer.Option(help="Total variation that counts as equal.")] = 1e-5,
    as_json: AsJson = False,
) -> None:
    """One configuration, now: the engine's own output law with speculation off and on, enumerated exactly.

    Exploratory: it belongs to no study and decides nothing in one.
    """
    from prereg.analyse.exact import decide_exactly
    from prereg.collect.choices import Walk, walk_arms
    from prereg.draft.rules import documented_rules, tiny_model

    if not 0 < tolerance < 1:
        raise UsageError(
            f"{tolerance} is no tolerance: between 0 and 1", where="--tolerance", next_step="1e-5"
        )
    model = tiny_model(model_seed, initializer_range)
    ids = _prompt(prompt, prompt_ids, model)
    features = _features(settings or [])
    configuration = {
        "id": "probe",
        "role": "probe",
        "about": "an exploratory probe",
        "build": build,
        "adapter": "hf",
        "model": "tiny",
        "prompt": "prompt",
        "horizon": horizon,
        "features": features,
        "drafter": _drafter(drafter, model),
        "predicates": [],
        "command": None,
    }
    walk = Walk(
        configuration=configuration, model=model, prompt=ids, runs=budget_runs, seconds=budget_seconds
    )
    meter = _Meter()
    walked = walk_arms(walk, build, advance=meter.advance, failing=_failing)
    meter.end()
    predicates = documented_rules(features, horizon, ids, model)
    result = decide_exactly(
        walked.off,
        walked.on,
        events=_events(walked.off, horizon),
        predicates=predicates,
        tolerance=tolerance,
    )
    if as_json:
        emit(_as_value(result, walked.off, walked.on, walked.explanation, configuration))
        return
    _show(result, walked.off, walked.on, walked.explanation, model["vocab"])


class _Meter:
    """Leaves so far, told every second or so: how many there will be is not known before the end."""

    def __init__(self) -> None:
        import time

        self._clock = time.monotonic
        self._begun = self._told = self._clock()
        self._leaves = {"off": 0, "on": 0}

    def advance(self, arm: str, leaves: int) -> None:
        self._leaves[arm] += leaves
        now = self._clock()
        if now - self._told >= 2.0:
            self._told = now
            self._line(now)

    def _line(self, now: float) -> None:
        total = sum(self._leaves.values())
        rate = total / max(now - self._begun, 1e-9)
        sys.stderr.write(
            f"paths: {self._leaves['off']:,} off, {self._leaves['on']:,} on, {rate:,.0f} a second\n"
        )

    def end(self) -> None:
        self._line(self._clock())


def _prompt(letters: str, ids: str | None, model: Mapping[str, Any]) -> list[int]:
    vocabulary: list[str] = model["vocab"]
    if ids is not None:
        try:
            found = [int(part) for part in ids.split(",")]
        except ValueError:
            raise UsageError(
                f"{ids!r} is not a list of token ids", where="--prompt-ids", next_step="0,1,2"
            ) from None
        if not all(0 <= token < len(vocabulary) for token in found):
            raise UsageError(f"token ids go from 0 to {len(vocabulary) - 1}", where="--prompt-ids")
        return found
    if not letters or any(letter not in vocabulary for letter in letters):
        raise UsageError(f"{letters!r} has other letters than {''.join(vocabulary[:-1])}", where="--prompt")
    return [vocabulary.index(letter) for letter in letters]


def _features(settings: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise UsageError(
                f"{setting!r} is not KEY=VALUE", where="--set", next_step="--set guidance_scale=1.5"
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            raise UsageError(
                f"{text!r} is not JSON", where=f"--set {name}", next_step=f"--set '{name}=\"…\"'"
            ) from None
    return found


def _drafter(kind: str, model: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "prompt-lookup":
        return {"kind": kind, "max_ngram": 2, "max_tokens": 3}
    if kind == "assistant":
        # Another model of the same kind: a drafter that agrees with the main model would prove little.
        other = {**model, "seed": str(int(model["seed"]) + 1)}
        return {"kind": kind, "model": other, "max_tokens": 2}
    raise UsageError(
        f"there is no drafter {kind!r}", where="--drafter", next_step="prompt-lookup or assistant"
    )


def _events(off: Tree, horizon: int) -> tuple[Event, ...]:
    from prereg.analyse.exact import law_of
    from prereg.draft.family import family
    from prereg.model.law import Decoded, Mass

    law = [Mass(outcome=o, p=min(p, 1.0)) for o, p in law_of(off).items() if isinstance(o, Decoded)]
    return family(law, horizon=horizon).events


def _failing(off: Tree, on: Tree) -> list[tuple[int, ...]]:
    from prereg.analyse.exact import departing_paths

    return departing_paths(off, on)[:EXPLAINED]


def _law_json(law: Sequence[Mass]) -> list[dict[str, Any]]:
    from prereg.codec.convert import to_json

    return [{"outcome": to_json(m.outcome), "p": m.p} for m in law]


def _as_value(
    result: ExactResult,
    off: Tree,
    on: Tree,
    explanation: Mapping[str, Any] | None,
    configuration: Mapping[str, Any],
) -> dict[str, Any]:
    exact = result.slack_off == 0 and result.slack_on == 0
    return {
        "exploratory": True,
        "configuration": dict(configuration),
        "verdict": result.verdict,
        "reason": result.reason,
        "tolerance": result.tolerance,
        "tv": result.tv_upper if exact else None,
        "tv_lower": result.tv_lower,
        "tv_upper": result.tv_upper,
        "witness_mass": result.witness_mass,
        "event": result.event,
        "event_gap": result.event_gap,
        "proposals": result.proposals,
        "accepted": result.accepted,
        "runs": {"off": off.runs, "on": on.runs},
        "unexplored": {"off": result.slack_off, "on": result.slack_on},
        "seconds": {"off": round(off.seconds, 3), "on": round(on.seconds, 3)},
        "off": _law_json(result.off),
        "on": _law_json(result.on),
        "admission": {"off": off.admission, "on": on.admission},
        "failing_path": None if explanation is None else dict(explanation),
    }


def _show(
    result: ExactResult, off: Tree, on: Tree, explanation: Mapping[str, Any] | None, vocabulary: Sequence[str]
) -> None:
    table(
        "Exact probe (exploratory)",
        ("", "off", "on"),
        [
            ("engine runs", number(off.runs), number(on.runs)),
            ("outcomes", number(len(result.off)), number(len(result.on))),
            ("unexplored mass", number(result.slack_off), number(result.slack_on)),
            ("seconds", f"{off.seconds:.1f}", f"{on.seconds:.1f}"),
        ],
    )
    say(f"{result.verdict}: {result.reason}.")
    if result.tv_upper - result.tv_lower > 1e-9:
        say(f"  total variation   {result.tv_lower:.6g} to {result.tv_upper:.6g}")
    else:
        say(f"  total variation   {result.tv_upper:.6g}")
    if result.event is not None:
        say(f"  largest event     {result.event}, on minus off {result.event_gap:+.6g}")
    say(f"  witness mass      {result.witness_mass:.6g}")
    say(f"  drafter           {result.proposals:,} proposed, {result.accepted:,} accepted over all paths")
    if explanation is not None and result.verdict == "DEPARTS":
        _show_path(explanation, vocabulary)


def _show_path(path: Mapping[str, Any], vocabulary: Sequence[str]) -> None:
    def text(tokens: Sequence[int]) -> str:
        return " ".join(vocabulary[t] if t < len(vocabulary) else str(t) for t in tokens) or "(nothing)"

    say("The shortest failing path:")
    outcome = path.get("outcome", {})
    if "tokens" in outcome:
        say(f"  returned               {text(outcome['tokens'])}")
    if path.get("what") == "row":
        say(f"  after the prefix       {text(path['prefix'])}")
        say(f"  probabilities used     {[round(p, 4) for p in path['used']]}")
        say(f"  sequential decoding's  {[round(p, 4) for p in path['expected']]}")
        if path.get("saw") is not None:
            say(f"  the processor saw      {text(path['saw'])}")
        say(f"  it should have seen    {text(path.get('should_have_seen', []))}")
        calls = [text(c["saw"]) for c in path.get("calls", [])]
        wanted = [text(c["saw"]) for c in path.get("sequential_calls", [])]
        if calls != wanted:
            say(f"  its calls were         {'; '.join(calls)}")
            say(f"  sequentially           {'; '.join(wanted)}")
    elif path.get("what") == "stop":
        say(f"  {path['detail']} after  {text(path['prefix'])}")
    else:
        say(f"  what went wrong        {path.get('what')}")
