"""Transformers 5.17.0: what the adapter draws is what the engine draws, and its observers change nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from harness.bench import FEATURES, MODEL, PROMPT, configuration
from harness.session import ROOT, Session
from harness.wire import JobError
from tests.engines.hf_environment import hf_python

pytestmark = pytest.mark.engines

OFF = {"id": "off", "role": "reference", "speculation": False}
ON = {"id": "on", "role": "test", "speculation": True}
BIASED = FEATURES | {
    "sequence-bias": {"sequence_bias": [[[2], 1.5], [[2, 3], -1.0]], "repetition_penalty": 1.2}
}

# The engine without the adapter: a plain model, a new configuration and no observer for every call.
PLAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
job = json.loads(sys.argv[2])
import torch
from transformers import GenerationConfig, SynthIDTextWatermarkingConfig
from harness.adapters import hf_model
torch.set_num_threads(1)
model, digest = hf_model.build(job["model"])
tokenizer = hf_model.tokenizer(job["model"])
result = {}
for name, features in job["features"].items():
    features = dict(features)
    if "watermarking" in features:
        mark = dict(features.pop("watermarking"))
        mark.pop("kind")
        features["watermarking_config"] = mark
    for arm, extra, rows in (
        ("on", {"prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 2}, 1),
        ("off", {}, 1),
        ("off", {}, 9),
    ):
        drawn = []
        for seed in job["seeds"]:
            given = dict(features)
            if "watermarking_config" in given:
                given["watermarking_config"] = SynthIDTextWatermarkingConfig(**given["watermarking_config"])
            config = GenerationConfig(
                do_sample=True, top_k=0, top_p=1.0, temperature=1.0, max_new_tokens=3, eos_token_id=6,
                pad_token_id=6, num_return_sequences=rows, **given, **extra
            )
            torch.manual_seed(seed)
            ids = torch.tensor([job["prompt"]])
            mask = torch.ones_like(ids)
            out = model.generate(ids, attention_mask=mask, generation_config=config, tokenizer=tokenizer)
            drawn.append(out[:, ids.shape[1]:].tolist())
        result[f"{name} {arm} {rows}"] = drawn
print(json.dumps({"digest": digest, "result": result}))
"""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session(hf_python()) as session:
        yield session


def start(session: Session, features: dict[str, Any], **change: Any) -> Any:
    model = change.pop("model", MODEL)
    prompt = change.pop("prompt", PROMPT)
    return session.ask(
        "open", configuration=configuration(features) | change, model=model, prompt=prompt, cwd=None
    ).ok["model_sha256"]


def drawn(session: Session, arm: dict[str, Any], seeds: range, rows: int = 1) -> list[list[dict[str, Any]]]:
    reply = session.ask("draws", arm=arm, seeds=[str(seed) for seed in seeds], rows=rows)
    return [request["draws"] for request in reply.requests]


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    job = {"model": MODEL, "prompt": PROMPT, "features": BIASED, "seeds": list(range(40))}
    done = subprocess.run(
        [hf_python(), "-I", "-c", PLAIN, str(ROOT), json.dumps(job)], capture_output=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def is_padded(row: list[int], tokens: list[int]) -> bool:
    """Whether `row` is `tokens` and then nothing but padding."""
    return row[: len(tokens)] == tokens and all(token == 6 for token in row[len(tokens) :])


@pytest.mark.parametrize("name", BIASED)
def test_the_observers_change_no_draw(session: Session, plain: dict[str, Any], name: str) -> None:
    assert start(session, BIASED[name]) == plain["digest"]
    on = [[draw["outcome"]["tokens"] for draw in rows] for rows in drawn(session, ON, range(40))]
    assert on == plain["result"][f"{name} on 1"]
    for rows in (1, 9):
        off = [
            [draw["outcome"]["tokens"] for draw in draws] for draws in drawn(session, OFF, range(40), rows)
        ]
        for ours, theirs in zip(off, plain["result"][f"{name} off {rows}"], strict=True):
            assert len(ours) == len(theirs)
            assert all(is_padded(row, tokens) for row, tokens in zip(theirs, ours, strict=True))


def test_padding_is_never_taken_for_an_end_token(session: Session) -> None:
    """Rows of a batch end by stop string, end token and length; the pad token is the end token."""
    start(session, FEATURES["stop-string"])
    finishes = set()
    for draws in drawn(session, OFF, range(20), 64):
        for draw in draws:
            tokens, finish = draw["outcome"]["tokens"], draw["outcome"]["finish"]
            finishes.add(finish)
            assert 6 not in tokens[:-1]
            stopped = any(tokens[at : at + 2] == [2, 3] for at in range(len(tokens) - 1))
            if stopped:
                assert (tokens[-2:], finish) == ([2, 3], "stop")
            else:
                assert finish == ("eos" if tokens[-1] == 6 else "length")
                assert finish == "eos" or len(tokens) == 3
    assert finishes == {"eos", "stop", "length"}


def test_min_new_tokens_keeps_the_end_away(session: Session) -> None:
    start(session, FEATURES["min-new-tokens"])
    outcomes = [draw["outcome"]["tokens"] for draws in drawn(session, OFF, range(4), 500) for draw in draws]
    assert all(6 not in tokens[:2] for tokens in outcomes)
    assert any(tokens[-1] == 6 for tokens in outcomes)


def test_overshoot_past_a_stop_string_stays_visible(session: Session) -> None:
    start(session, FEATURES["stop-string"])
    outcomes = [draws[0]["outcome"] for draws in drawn(session, ON, range(300))]
    past = [
        outcome for outcome in outcomes if outcome["tokens"][:2] == [2, 3] and len(outcome["tokens"]) == 3
    ]
    assert past, "no draw ran past the stop string"
    assert {outcome["finish"] for outcome in past} <= {"eos", "length"}


def test_the_counters_say_what_was_proposed_and_kept(session: Session) -> None:
    start(session, FEATURES["plain"])
    both = [draws[0] for draws in drawn(session, ON, range(300))]
    for draw in both:
        tokens, counters = draw["outcome"]["tokens"], draw["counters"]
        # After abcdabcdab the drafter proposes c, d, a.
        first = next(
            (at for at, (token, kept) in enumerate(zip(tokens, [2, 3, 0], strict=False)) if token != kept),
            None,
        )
        assert counters["proposals"] >= 3
        assert counters["verifications"] >= 1
        assert counters["accepted"] >= (len(tokens) if first is None else first)
        if tokens[0] == 6:
            assert counters == {"proposals": 3, "verifications": 1, "accepted": 0}
        if tokens == [2, 3, 0]:
            assert counters == {"proposals": 3, "verifications": 1, "accepted": 3}
    seen = [draw["outcome"]["tokens"] for draw in both]
    assert [6] in seen
    assert [2, 3, 0] in seen
    assert {draw["counters"]["accepted"] for draw in both} >= {0, 1, 2, 3}


def test_nothing_is_proposed_where_nothing_repeats(session: Session) -> None:
    start(session, FEATURES["plain"], prompt=[0, 1, 2, 3], horizon=1)
    assert {draws[0]["counters"]["proposals"] for draws in drawn(session, ON, range(20))} == {0}


def test_a_batch_on_the_speculative_arm_is_refused(session: Session) -> None:
    start(session, FEATURES["plain"])
    with pytest.raises(JobError) as caught:
        drawn(session, ON, range(1), 2)
    assert caught.value.code == "unsupported"


def test_an_arm_that_speculates_needs_a_drafter(session: Session) -> None:
    start(session, FEATURES["plain"], drafter=None)
    assert len(drawn(session, OFF, range(2), 3)) == 2
    with pytest.raises(JobError) as caught:
        drawn(session, ON, range(1))
    assert caught.value.code == "bad-request"


@pytest.mark.parametrize(("arm", "rows"), [(ON, 1), (OFF, 1), (OFF, 5)])
def test_an_exception_of_the_engine_is_an_outcome(session: Session, arm: dict[str, Any], rows: int) -> None:
    start(session, {"temperature": -1.0})
    (draws,) = drawn(session, arm, range(1), rows)
    assert [draw["outcome"] for draw in draws] == [{"crash": "ValueError"}] * rows
    assert all(draw["counters"].keys() == {"proposals", "verifications", "accepted"} for draw in draws)
    start(session, FEATURES["plain"])
    assert "tokens" in drawn(session, arm, range(1), rows)[0][0]["outcome"]


def test_an_exception_during_verification_keeps_what_was_counted(session: Session) -> None:
    """An end token beyond the vocabulary, forced at the last position, which is reached mid-way."""
    drafter = {"kind": "prompt-lookup", "max_ngram": 2, "max_tokens": 1}
    start(session, {"forced_eos_token_id": 99, "min_new_tokens": 2}, drafter=drafter)
    crashed = [draws[0] for draws in drawn(session, ON, range(20))]
    assert {draw["outcome"].get("crash") for draw in crashed} == {"IndexError"}
    assert all(draw["counters"]["proposals"] >= 1 for draw in crashed)
    assert {draw["counters"]["accepted"] for draw in crashed} >= {0, 1}


@pytest.mark.parametrize(
    ("features", "code", "says"),
    [
        ({"gidance_scale": 1.5}, "bad-request", "features.gidance_scale"),
        ({"_eos_token_tensor": 1}, "bad-request", "features._eos_token_tensor"),
        ({"watermarking_config": {}}, "bad-request", "features.watermarking_config"),
        ({"max_new_tokens": 9}, "bad-request", "features.max_new_tokens"),
        ({"num_return_sequences": 2}, "bad-request", "features.num_return_sequences"),
        ({"return_dict_in_generate": True}, "bad-request", "features.return_dict_in_generate"),
        ({"num_beams": 2}, "unsupported", "features.num_beams"),
        ({"max_time": 1.0}, "unsupported", "features.max_time"),
        ({"watermarking": {"kind": "other"}}, "unsupported", "features.watermarking"),
        ({"watermarking": {"kind": "synthid", "keys": [1]}}, "bad-request", "features.watermarking"),
        ({"sequence_bias": [[2, 1.5]]}, "bad-request", "features.sequence_bias"),
        ({"cache_implementation": "paper"}, "bad-request", "refuses the features.*cache_implementation"),
    ],
)
def test_a_feature_that_cannot_be_set_is_named(
    session: Session, features: dict[str, Any], code: str, says: str
) -> None:
    with pytest.raises(JobError, match=says) as caught:
        start(session, features)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"horizon": 0}, "bad-request", "horizon"),
        ({"horizon": None}, "bad-request", "horizon"),
        ({"horizon": 60}, "bad-request", "context"),
        ({"prompt": []}, "bad-request", "prompt"),
        ({"prompt": [7]}, "bad-request", "prompt"),
        ({"prompt": [-1]}, "bad-request", "prompt"),
        ({"model": None}, "bad-request", "model"),
        ({"model": MODEL | {"kind": "huge"}}, "unsupported", "huge"),
        ({"model": MODEL | {"size": 1}}, "bad-request", "model.size is unknown"),
        (
            {"model": {key: MODEL[key] for key in MODEL if key != "eos"}},
            "bad-request",
            "model.eos is missing",
        ),
        ({"model": MODEL | {"hidden": "16"}}, "bad-request", "model.hidden"),
        ({"model": MODEL | {"eos": 7}}, "bad-request", "model.eos"),
        ({"model": MODEL | {"vocab": ["a", "a"]}}, "bad-request", "model.vocab"),
        ({"drafter": {"kind": "draft-model"}}, "unsupported", "draft-model"),
        (
            {"drafter": {"kind": "prompt-lookup", "max_ngram": 2}},
            "bad-request",
            "drafter.max_tokens is missing",
        ),
        (
            {"drafter": {"kind": "prompt-lookup", "max_ngram": 0, "max_tokens": 3}},
            "bad-request",
            "drafter.max_ngram",
        ),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(
    session: Session, change: dict[str, Any], code: str, says: str
) -> None:
    with pytest.raises(JobError, match=says) as caught:
        start(session, FEATURES["plain"], **change)
    assert caught.value.code == code


def test_the_weights_are_the_same_on_every_machine(session: Session) -> None:
    """The digest was taken once; whoever changes how weights are made changes every study's model."""
    digest = "8e084be9"
    assert start(session, {}).startswith(digest)
    assert not start(session, {}, model=MODEL | {"seed": "2199"}).startswith(digest)
    assert not start(session, {}, model=MODEL | {"initializer_range": 0.2}).startswith(digest)
