"""Faults planted in a copy of llama-cpp-python's own loop, in the memory of one worker, are caught.

Each fault is a change to the source text of one method of the installed `Llama`, executed in the engine's own
module; the files stay as they are. The engine itself shows its processors the token buffer instead of the
prefix: where another fault is planted, that is mended first, so that only the planted one can be found.
`PREREG_META_MODELS` says how many random models each is tried on.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.session import Session
from harness.wire import UNSUPPORTED, JobError
from tests.engines import lcp_environment as lcp
from tests.engines.lcp_environment import ON, Walked, departing, distance, walk

pytestmark = pytest.mark.engines

MODELS = int(os.environ.get("PREREG_META_MODELS", "2"))
PROMPT = [0, 1, 2, 0, 1, 2, 0]
TINY: dict[str, Any] = lcp.MODEL | {"vocab": ["a", "b", "c", "<eos>"], "eos": 3, "initializer_range": 0.4}
DRAFTER = {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 2}
HORIZON = 4

MIN_TOKENS: dict[str, Any] = {"min_tokens": 2, "repeat_penalty": 1.3}
COMPLETION: dict[str, Any] = {"api": "create_completion", "stop": ["bc"]}

PLANT = """
import inspect, json, textwrap
from llama_cpp import llama
for name, changes in json.loads({faults!r}):
    text = textwrap.dedent(inspect.getsource(getattr(llama.Llama, name)))
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    space = {{}}
    exec(compile(text, "planted", "exec"), vars(llama), space)
    setattr(llama.Llama, name, space[name])
"""

Change = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Changes to the source of methods of `Llama`."""

    changes: tuple[tuple[str, tuple[Change, ...]], ...]
    what: str
    """How the shortest failing path is explained."""

    features: dict[str, Any]
    expands: bool = False
    """Whether a row past the first mismatch matters."""


REPAIR = (
    ("_init_sampler", (("logit_processor(self._input_ids, ", "logit_processor(self._logical_ids, "),)),
    (
        "sample",
        (
            (
                "ridx = idx - self.n_tokens",
                "self._logical_ids = self.input_ids[: idx + 1]\n    ridx = idx - self.n_tokens",
            ),
        ),
    ),
)
"""Processors see the prefix of the row that is sampled."""

OWN = str(Path(lcp.__file__).with_name("lcp_processors.py"))
ROLLBACK = "self.n_tokens = sample_idx\n"
STOPS = "if len(any_stop) > 0:\n            first_stop"
HERE = "len(prompt_tokens) + len(completion_tokens) - 1"

FAULTS: dict[str, Fault] = {
    # A processor is fed the token buffer: what the engine does.
    "buffer": Fault(changes=(), what="row", features=MIN_TOKENS),
    # One rejected token stays in the context, and the loop goes on behind it.
    "rollback": Fault(
        changes=(*REPAIR, ("generate", ((ROLLBACK, "self.n_tokens = sample_idx = sample_idx + 1\n"),))),
        what="row",
        features=MIN_TOKENS,
    ),
    # What was drawn is compared with the token before the one that was proposed for its place.
    "acceptance": Fault(
        changes=(
            *REPAIR,
            ("generate", (("!= self._input_ids[sample_idx]", "!= self._input_ids[sample_idx - 1]"),)),
        ),
        what="row",
        features=MIN_TOKENS,
        expands=True,
    ),
    # A stop string is looked for when a block is through.
    "block-stop": Fault(
        changes=(
            *REPAIR,
            (
                "_create_completion",
                (
                    (
                        STOPS,
                        f"if any_stop and ({HERE} >= self.n_tokens or token != self.input_ids[{HERE}]):\n"
                        "            first_stop",
                    ),
                ),
            ),
        ),
        what="stop",
        features=COMPLETION,
    ),
}

# A row past the mismatch is sampled, and becomes the next proposal: no fault, as any proposal will do.
AHEAD: tuple[tuple[str, tuple[Change, ...]], ...] = (
    *REPAIR,
    (
        "generate",
        (
            ("+ len(tokens) - 1\n", "+ len(tokens) - 1\n    ahead = None\n"),
            (ROLLBACK, "ahead = self.sample(idx=sample_idx); self.n_tokens = sample_idx\n"),
            (
                "tokens.extend(\n",
                "draft_tokens, ahead = (draft_tokens if ahead is None else np.array([ahead])), None\n"
                "            tokens.extend(\n",
            ),
        ),
    ),
)
KEPT: tuple[tuple[str, tuple[Change, ...]], ...] = (
    (
        "generate",
        (
            (
                "self._mirostat_mu = ctypes.c_float(2.0 * mirostat_tau)\n",
                "logits_processor = self.__dict__.setdefault('_kept', logits_processor)\n",
            ),
        ),
    ),
)
LAST_DIST = "sampler.add_temp(temp)\n            sampler.add_dist(self._seed)"
PAST: tuple[tuple[str, tuple[Change, ...]], ...] = (
    (
        "_init_sampler",
        (
            (
                LAST_DIST,
                "sampler.add_temp(temp)\n            llama_cpp.llama_sampler_chain_add("
                "sampler.sampler, llama_cpp.llama_sampler_init_dist(self._seed))",
            ),
        ),
    ),
)
JITTER: tuple[tuple[str, tuple[Change, ...]], ...] = (
    ("_init_sampler", ((LAST_DIST, "np.random.random()\n            " + LAST_DIST),)),
)


def planted(version: str, changes: tuple[tuple[str, tuple[Change, ...]], ...]) -> Session:
    return Session(lcp.lcp_python(version), prelude=PLANT.format(faults=json.dumps(changes)))


def start(session: Session, features: dict[str, Any], seed: int, horizon: int = HORIZON) -> None:
    given = lcp.configuration(features, horizon, drafter=DRAFTER)
    lcp.start(session, {}, configuration=given, model=TINY | {"seed": str(seed)}, prompt=PROMPT)


def both(session: Session, features: dict[str, Any], seed: int) -> tuple[Walked, Walked]:
    start(session, features, seed)
    off = walk(session, "off")
    assert off.checks["ok"], off.checks
    return off, walk(session, "on")


@pytest.fixture(params=lcp.VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(version: str, name: str) -> None:
    fault = FAULTS[name]
    with planted(version, fault.changes) as session:
        for seed in range(MODELS):
            off, on = both(session, fault.features, seed)
            assert distance(off, on) > 1e-5, seed
            assert on.checks["ok"], on.checks
            assert on.checks["proposals"] > 0
            assert ("refill" in on.checks["restarts"]) == fault.expands, on.checks
            paths = departing(off, on)
            path = session.ask("explain", arm=ON, choices=paths, expand=fault.expands).ok["path"]
            assert path["what"] == fault.what, path


@pytest.mark.parametrize("features", [MIN_TOKENS, COMPLETION, {}], ids=["processors", "stop", "plain"])
def test_the_clean_engine_is_not_accused(version: str, features: dict[str, Any]) -> None:
    """With the repair where there is a processor, and as it is where there is none."""
    with planted(version, REPAIR if features else ()) as session:
        for seed in range(MODELS):
            off, on = both(session, features, seed)
            assert distance(off, on) < 1e-6, seed
            assert on.checks["ok"] and on.checks["restarts"] == [], on.checks
            assert on.checks["accepted"] > 0


def test_an_engine_that_samples_past_the_mismatch_is_expanded_and_still_right(version: str) -> None:
    with planted(version, AHEAD) as session:
        for seed in range(MODELS):
            off, on = both(session, {"temp": 0.9}, seed)
            assert "refill" in on.checks["restarts"] and on.checks["refill"]["expanded"]
            assert on.checks["ok"], on.checks
            assert distance(off, on) < 1e-6


def test_processors_that_outlive_their_request_are_not_admitted(version: str) -> None:
    counting = {"processors": [{"file": OWN, "class": "Counting", "arguments": {"step": 1.0}}]}
    with planted(version, KEPT) as session:
        start(session, counting, 0, horizon=2)
        checks = walk(session, "on").checks
        assert not checks["ok"]
        assert not checks["walk"]["ok"] and not checks["replay"]["ok"]
        # That is no reason to think that rows past the mismatch matter.
        assert checks["restarts"] == []


def test_a_token_that_is_drawn_past_the_chooser_is_refused(version: str) -> None:
    with planted(version, PAST) as session:
        start(session, {}, 0)
        with pytest.raises(JobError, match="past the chooser") as caught:
            walk(session, "on")
        assert caught.value.code == UNSUPPORTED


def test_randomness_from_elsewhere_is_not_admitted(version: str) -> None:
    with planted(version, JITTER) as session:
        start(session, {}, 0, horizon=2)
        checks = walk(session, "on").checks
        assert not checks["ok"] and not checks["randomness"]["ok"]
