"""Faults planted in a copy of Transformers' own decoding loop, in the memory of one worker, are caught.

Each fault is a change to the source text of the installed function, executed in the engine's own module; the
files stay as they are. Each is tried on `PREREG_META_MODELS` random models (by default two, or one with a
draft model, whose trees are larger). `PREREG_META_HORIZON=2` makes smaller ones; `pytest -rP` shows counts.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from typing import Any

import pytest

from harness.bench import configuration
from harness.oracle.naive import canonical
from harness.session import Session
from harness.wire import UNSUPPORTED, JobError
from tests.engines.hf_environment import hf_python

pytestmark = pytest.mark.engines

MODELS = os.environ.get("PREREG_META_MODELS")
HORIZON = int(os.environ.get("PREREG_META_HORIZON", "3"))
PROMPT = [0, 1, 2, 0, 1, 2, 0]
TINY: dict[str, Any] = {
    "kind": "tiny-llama",
    "seed": "0",
    "initializer_range": 0.4,
    "vocab": ["a", "b", "c", "<eos>"],
    "eos": 3,
    "hidden": 16,
    "intermediate": 32,
    "layers": 1,
    "heads": 2,
    "context": 64,
}
LOOKUP = {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 2}
ARMS = {
    "off": {"id": "off", "role": "reference", "speculation": False},
    "on": {"id": "on", "role": "test", "speculation": True},
}
FEATURES = {
    "repetition_penalty": 1.5,
    # Of every last token: whatever else a row is shown must tell.
    "sequence_bias": [[[0, 1], 0.7], [[1, 2], 1.0], [[2, 0], -0.8], [[2], -0.5]],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Replacements in the source of one function of `transformers.generation`."""

    function: str
    owner: str = "utils.GenerationMixin"
    """Where it is, below `transformers.generation`."""
    changes: tuple[tuple[str, str], ...]
    why: str


LOOP = "_assisted_decoding"
RATIO = "_speculative_sampling"
NO_BUDGET = ("if valid_tokens.shape[1] > tokens_budget:", "if False:")
BUFFER = Fault(
    function=LOOP,
    changes=(
        (
            "logits_processor(candidate_input_ids[:, : cur_len + i], ",
            "logits_processor(candidate_input_ids, ",
        ),
    ),
    why="the processor is fed the whole buffer for every row",
)
BLOCK_STOP = Fault(
    function=LOOP,
    changes=(
        ("is_done_candidate = stopping_criteria(candidate_input_ids, None)", "is_done_candidate = False"),
        NO_BUDGET,
    ),
    why="the stopping rule is asked once a block, after it was committed",
)
ROLLBACK = Fault(
    function=LOOP,
    changes=(("outputs.past_key_values.crop(-number_of_tokens_to_crop)", "pass"),),
    why="rejected tokens stay in the cache",
)
FAULTS: dict[str, tuple[str, Fault]] = {
    "lookup-buffer": ("lookup", BUFFER),
    "lookup-block-stop": ("lookup", BLOCK_STOP),
    "lookup-acceptance": (
        "lookup",
        Fault(
            function=LOOP,
            changes=(
                (
                    "valid_tokens = selected_tokens[:, : n_matches + 1]",
                    "n_matches = (n_matches + 1).clamp(max=candidate_length); "
                    "valid_tokens = selected_tokens[:, : n_matches + 1]",
                ),
            ),
            why="one token more is committed than was matched",
        ),
    ),
    "lookup-rollback": ("lookup", ROLLBACK),
    "assistant-buffer": ("assistant", BUFFER),
    "assistant-block-stop": ("assistant", BLOCK_STOP),
    "assistant-rollback": ("assistant", ROLLBACK),
    "assistant-acceptance": (
        "assistant",
        Fault(
            function=RATIO,
            owner="utils",
            changes=(
                (
                    "n_matches = ((~is_accepted).cumsum(dim=-1) < 1).sum()",
                    "n_matches = ((~is_accepted).cumsum(dim=-1) < 2).sum()",
                ),
            ),
            why="the first rejected token is kept",
        ),
    ),
    "assistant-residual": (
        "assistant",
        Fault(
            function=RATIO,
            owner="utils",
            changes=(
                ("p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)", "p_prime = p_n_plus_1.clone()"),
            ),
            why="after a rejection the target's own law is sampled, not the residual",
        ),
    ),
    "assistant-ratio": (
        "assistant",
        Fault(
            function=RATIO,
            owner="utils",
            changes=(
                ("is_accepted = r_i <= probability_ratio", "is_accepted = r_i <= probability_ratio * 0.9"),
            ),
            why="the uniform is compared with another number than the one it was shaped like",
        ),
    ),
}

HARMLESS: dict[str, tuple[str, Fault, list[str]]] = {
    "lookup-later-rows": (
        "lookup",
        Fault(
            function=LOOP,
            changes=(
                (
                    "valid_tokens = selected_tokens[:, : n_matches + 1]",
                    "valid_tokens = selected_tokens[:, : n_matches + 1]; "
                    "candidate_generator.num_output_tokens = 1 + int(selected_tokens[0, -1]) % 2",
                ),
            ),
            why="how much is proposed next depends on a row past the first mismatch",
        ),
        ["refill"],
    ),
    "assistant-flat-drafter": (
        "assistant",
        Fault(
            function="get_candidates",
            owner="candidate_generator.AssistedCandidateGenerator",
            changes=(
                (
                    "candidate_ids, candidate_logits = self._generate_candidates(generation_args)",
                    "generation_args[self.input_ids_key] = generation_args[self.input_ids_key] * 0; "
                    "candidate_ids, candidate_logits = self._generate_candidates(generation_args); "
                    "candidate_ids = torch.cat((input_ids, candidate_ids[:, input_ids.shape[1]:]), dim=-1)",
                ),
            ),
            why="the drafter is shown another prefix: it proposes worse, but that is verified all the same",
        ),
        [],
    ),
}
"""Changes that leave the law as it is, each with the restarts of the walk that it needs."""

PLANT = """
import importlib, inspect, json, textwrap
fault = json.loads({fault!r})
name, _, kind = fault["owner"].partition(".")
module = importlib.import_module("transformers.generation." + name)
owner = getattr(module, kind) if kind else module
text = textwrap.dedent(inspect.getsource(getattr(owner, fault["function"])))
for old, new in fault["changes"]:
    assert text.count(old) == 1, old
    text = text.replace(old, new)
space = {{}}
exec(compile(text, "planted", "exec"), vars(module), space)
setattr(owner, fault["function"], space[fault["function"]])
"""

LEAK = """
from transformers.generation import utils
make, kept = utils.GenerationMixin._get_logits_processor, {}
def _get_logits_processor(self, *args, **kwargs):
    return kept.setdefault(id(self), make(self, *args, **kwargs))
utils.GenerationMixin._get_logits_processor = _get_logits_processor
"""


def seeds(drafter: str) -> range:
    """The models to try."""
    return range(int(MODELS or {"lookup": 2, "assistant": 1}[drafter]))


def planted(fault: Fault) -> str:
    """What a worker runs first."""
    return PLANT.format(
        fault=json.dumps({"function": fault.function, "owner": fault.owner, "changes": fault.changes})
    )


def start(
    session: Session, drafter: str, seed: int, features: dict[str, Any] = FEATURES, horizon: int = 3
) -> None:
    spec = LOOKUP
    if drafter == "assistant":
        spec = {"kind": "assistant", "model": TINY | {"seed": f"assistant {seed}"}, "max_tokens": 2}
    session.ask(
        "open",
        configuration=configuration(features, horizon) | {"drafter": spec},
        model=TINY | {"seed": str(seed)},
        prompt=PROMPT,
    )


def walk(session: Session, arm: str) -> tuple[dict[str, float], dict[str, Any]]:
    found: dict[str, list[float]] = {}
    for message in session.stream("choices", arm=ARMS[arm]):
        if "error" in message:
            raise JobError(message["error"]["code"], message["error"]["message"])
        if "ok" in message:
            law = {key: math.fsum(weights) for key, weights in found.items()}
            return law, message["ok"]["admission"]
        if "restart" in message:
            found.clear()
        else:
            leaf = message["leaf"]
            found.setdefault(canonical(leaf["outcome"]), []).append(leaf["weight"])
    raise AssertionError("no end")


def distance(
    session: Session, drafter: str, seed: int, horizon: int = HORIZON
) -> tuple[float, dict[str, Any]]:
    start(session, drafter, seed, horizon=horizon)
    off, calibration = walk(session, "off")
    assert calibration["ok"], calibration
    on, checks = walk(session, "on")
    return math.fsum(abs(off.get(key, 0.0) - on.get(key, 0.0)) for key in off.keys() | on) / 2, checks


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    drafter, fault = FAULTS[name]
    found = []
    with Session(hf_python(), prelude=planted(fault)) as session:
        for seed in seeds(drafter):
            apart, checks = distance(session, drafter, seed)
            if HORIZON < 3 and apart <= 1e-5:
                # Too short for this fault to do harm: with some draft models a rollback spoils nothing yet.
                apart, checks = distance(session, drafter, seed, horizon=3)
            assert apart > 1e-5, (seed, fault.why)
            assert checks["ok"], checks
            assert checks["proposals"] > 0
            # Committing past the first mismatch reads a row that should not matter; a draft model's one
            # proposal before a horizon of 2 has no such row.
            past = name == "lookup-acceptance" or (name == "assistant-acceptance" and HORIZON > 2)
            assert ("refill" in checks["restarts"]) == past
            found.append(apart)
    print(f"{name}: caught on {len(found)} of {len(seeds(drafter))} models, TV at least {min(found):.2g}")


@pytest.mark.parametrize("drafter", ["lookup", "assistant"])
def test_the_clean_engine_is_not_accused(drafter: str) -> None:
    found = []
    with Session(hf_python()) as session:
        for seed in seeds(drafter):
            apart, checks = distance(session, drafter, seed)
            assert apart < 1e-6, (drafter, seed)
            assert checks["ok"] and checks["restarts"] == [], checks
            found.append(apart)
    print(f"clean {drafter}: equal on {len(found)} models, TV at most {max(found):.2g}")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_leaves_the_law_as_it_is_is_not_accused(name: str) -> None:
    drafter, change, restarts = HARMLESS[name]
    found = []
    with Session(hf_python(), prelude=planted(change)) as session:
        for seed in seeds(drafter):
            # What comes next can only depend on anything where there is room for it.
            apart, checks = distance(session, drafter, seed, horizon=3 if restarts else HORIZON)
            assert apart < 1e-6, (seed, change.why)
            assert checks["ok"] and checks["proposals"] > 0, checks
            assert checks["restarts"] == restarts, (seed, checks)
            assert checks["refill"]["expanded"] == ("refill" in restarts)
            found.append(apart)
    print(f"{name}: equal on {len(found)} models, TV at most {max(found):.2g}")


def test_processors_that_outlive_their_request_are_not_admitted() -> None:
    watermark = {"watermarking": {"kind": "synthid", "keys": [654, 400, 836], "ngram_len": 3}}
    with Session(hf_python(), prelude=LEAK) as session:
        for seed in seeds("lookup"):
            start(session, "lookup", seed, watermark, horizon=2)
            _, checks = walk(session, "on")
            assert not checks["ok"]
            assert not checks["walk"]["ok"] and not checks["replay"]["ok"]
            # That is no reason to think that rows past the mismatch matter.
            assert checks["restarts"] == []
    print(f"leak: refused on {len(seeds('lookup'))} models")


def uniform(text: str) -> str:
    """The acceptance draw taken in another way."""
    changes = (("r_i = torch.rand_like(probability_ratio)", text),)
    return planted(Fault(function=RATIO, owner="utils", changes=changes, why="another uniform"))


def test_a_uniform_that_is_not_merely_compared_is_refused() -> None:
    with Session(hf_python(), prelude=uniform("r_i = torch.rand_like(probability_ratio) ** 2")) as session:
        start(session, "assistant", 0)
        with pytest.raises(JobError, match="UniformUsed") as caught:
            walk(session, "on")
        assert caught.value.code == UNSUPPORTED


def test_a_uniform_from_elsewhere_is_not_admitted() -> None:
    with Session(hf_python(), prelude=uniform("r_i = torch.rand(probability_ratio.shape)")) as session:
        start(session, "assistant", 0, horizon=2)
        _, checks = walk(session, "on")
        assert not checks["ok"] and not checks["randomness"]["ok"]
