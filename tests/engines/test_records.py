"""Records beside the tokens: what each engine returned, in every arm and batch, and the replay of it."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from harness.adapters.base import Prefix
from harness.session import ROOT, Session
from harness.wire import JobError
from prereg.collect.runtime import environment_of, interpreter
from tests.engines.main_template import CONFIGURATIONS, OFF, ON, start, worker

pytestmark = pytest.mark.engines

TOLERANCE: float = CONFIGURATIONS["hf17-9"]["records"]["tolerance"]
GREATEST = 1e-6
"""More than any value of an engine that is right differs from its replay; a tenth of what is allowed."""

PLAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
job = json.loads(sys.argv[2])
import torch
from transformers import GenerationConfig
from harness.adapters import hf_model
torch.set_num_threads(1)
model, _ = hf_model.build(job["model"])
found = []
for extra, rows in (({"prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 2}, 1), ({}, 1), ({}, 6)):
    for seed in range(30):
        config = GenerationConfig(do_sample=True, top_k=0, top_p=1.0, temperature=1.0, max_new_tokens=3,
            eos_token_id=6, pad_token_id=6, num_return_sequences=rows, output_scores=True,
            return_dict_in_generate=True, **extra)
        torch.manual_seed(seed)
        ids = torch.tensor([job["prompt"]])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        found.append([[scores[row].tolist() for scores in out.scores] for row in range(rows)])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def hf() -> Iterator[Session]:
    with worker("hf-5.17.0") as session:
        yield session


def drawn(session: Session, arm: dict[str, Any], seeds: range, rows: int = 1) -> list[list[dict[str, Any]]]:
    reply = session.ask("draws", arm=arm, seeds=[str(seed) for seed in seeds], rows=rows)
    return [request["draws"] for request in reply.requests]


def replayed(session: Session) -> dict[Prefix, dict[str, Any]]:
    return {tuple(each["prefix"]): each["entry"] for each in session.ask("replay").ok["records"]}


def test_scores_are_those_that_generate_returned(hf: Session) -> None:
    start(hf, "hf17-9")
    protocol = ROOT / "prereg" / "draft" / "templates" / "main" / "protocol.json"
    value = json.loads(protocol.read_bytes())
    job = {"model": value["models"]["tiny-7"], "prompt": value["prompts"]["abcdabcdab"]}
    python = str(interpreter(environment_of("hf-5.17.0")))
    done = subprocess.run(
        [python, "-I", "-c", PLAIN, str(ROOT), json.dumps(job)], capture_output=True, check=True
    )
    expected = json.loads(done.stdout)
    found = [
        draws for arm, rows in ((ON, 1), (OFF, 1), (OFF, 6)) for draws in drawn(hf, arm, range(30), rows)
    ]
    for draws, rows in zip(found, expected, strict=True):
        for draw, steps in zip(draws, rows, strict=True):
            # Of a batch, steps past a row's end are padding.
            kept = steps[: len(draw["outcome"]["tokens"])] if len(draws) > 1 else steps
            assert [entry["tokens"] for entry in draw["record"]] == [list(range(7))] * len(kept)
            told = [value for entry in draw["record"] for value in entry["values"]]
            # The shortest decimal of a float32 is that float32 again.
            assert told == pytest.approx([value for step in kept for value in step], rel=6e-8, abs=1e-45)


def test_the_replay_has_every_prefix_that_can_be_reached(hf: Session) -> None:
    start(hf, "hf17-9")
    found = replayed(hf)
    assert set(found) == {()} | {(a,) for a in range(6)} | {(a, b) for a in range(6) for b in range(6)}
    start(hf, "hf17-4", features={"min_new_tokens": 2, "output_scores": True}, records={"kind": "scores"})
    assert replayed(hf)[(2,)]["values"][6] == "-inf"


@pytest.mark.parametrize(("arm", "seeds", "rows"), [(OFF, 3, 1000), (OFF, 60, 1), (ON, 400, 1)])
def test_scores_agree_with_their_replay_far_within_the_tolerance(
    hf: Session, arm: dict[str, Any], seeds: int, rows: int
) -> None:
    """The two differ by what a batch, a cache and a block of several tokens change in the last bits."""
    start(hf, "hf17-9")
    reference = replayed(hf)
    worst = 0.0
    for draws in drawn(hf, arm, range(seeds), rows):
        for draw in draws:
            tokens = draw["outcome"]["tokens"]
            assert len(draw["record"]) == len(tokens)
            for at, entry in enumerate(draw["record"]):
                expected = reference[tuple(tokens[:at])]["values"]
                gaps = [abs(a - b) for a, b in zip(entry["values"], expected, strict=True)]
                worst = max(worst, *gaps)
    assert 0 < worst < GREATEST < TOLERANCE


def test_a_crash_has_an_empty_record() -> None:
    with worker("hf-5.17.0-xgrammar-0.2.8") as session:
        features = CONFIGURATIONS["hfx-8"]["features"] | {"output_scores": True}
        start(session, "hfx-8", features=features, records={"kind": "scores"})
        draws = [draw for (draw,) in drawn(session, ON, range(60))]
    crashed = [draw for draw in draws if "crash" in draw["outcome"]]
    assert crashed and all(draw["record"] == [] for draw in crashed)
    assert all(draw["record"] for draw in draws if "crash" not in draw["outcome"])


def test_no_draw_has_a_record_unless_the_configuration_asks(hf: Session) -> None:
    start(hf, "hf17-9", records=None)
    assert all("record" not in draw for (draw,) in drawn(hf, ON, range(3)))


@pytest.mark.parametrize("version", ["19", "35"])
def test_log_probabilities_are_told_of_every_token_and_have_no_reference(version: str) -> None:
    with worker(f"lcp-0.3.{version}") as session:
        start(session, f"lcp-5-{version}")
        for arm in (OFF, ON):
            for (draw,) in drawn(session, arm, range(60)):
                tokens = draw["outcome"]["tokens"]
                assert [entry["tokens"] for entry in draw["record"]] == [list(range(10))] * len(tokens)
                for entry in draw["record"]:
                    assert math.fsum(map(math.exp, entry["values"])) == pytest.approx(1.0, abs=1e-5)
        with pytest.raises(JobError, match="has no records"):
            session.ask("replay")
        features = {"api": "create_completion", "logprobs": 3}
        start(session, f"lcp-5-{version}", features=features)
        for (draw,) in drawn(session, ON, range(60)):
            for token, entry in zip(draw["outcome"]["tokens"], draw["record"], strict=True):
                assert len(entry["tokens"]) in (3, 4) and token in entry["tokens"]


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("hf17-9", {"records": {"kind": "logprobs"}}, "this engine returns 'scores'"),
        ("hf17-9", {"features": {}}, "without output_scores"),
        ("lcp-5-35", {"records": {"kind": "scores"}}, "this engine returns 'logprobs'"),
        ("lcp-5-35", {"features": {"api": "create_completion"}}, "without create_completion"),
    ],
)
def test_records_that_the_engine_would_not_return_are_refused(
    name: str, changes: dict[str, Any], why: str
) -> None:
    with worker(CONFIGURATIONS[name]["build"]) as session, pytest.raises(JobError, match=why) as caught:
        start(session, name, **changes)
    assert caught.value.code == "bad-request"
