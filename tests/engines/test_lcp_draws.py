"""llama-cpp-python: draws are the engine's own, seeds are what they are said to be, and refusals say why."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.session import ROOT, Session
from harness.wire import BAD_REQUEST, UNSUPPORTED, JobError
from tests.engines import lcp_environment as lcp
from tests.engines.lcp_environment import ARMS, EOS, FEATURES, HORIZON, MODEL, PROMPT, drawn

pytestmark = pytest.mark.engines

BARE = """
import hashlib, json, sys
sys.path.insert(0, {root!r})
job = json.loads(sys.stdin.read())
from harness.adapters import llamacpp_model
from llama_cpp import LogitsProcessorList
from llama_cpp.llama import MinTokensLogitsProcessor
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

drafter = LlamaPromptLookupDecoding(job["drafter"]["max_ngram"], job["drafter"]["max_tokens"])
engines, _ = llamacpp_model.load(job["model"], (None, drafter))
result = {{}}
for arm, engine in zip(("off", "on"), engines):
    calls = []
    decode = engine._ctx.decode
    engine._ctx.decode = lambda batch, decode=decode, calls=calls: (calls.append(1), decode(batch))[1]
    rows = []
    for seed in job["seeds"]:
        processors = [MinTokensLogitsProcessor(job["least"], job["model"]["eos"])]
        engine.reset()
        engine.set_seed(seed)
        del calls[:]
        tokens = []
        for token in engine.generate(
            job["prompt"], temp=1.0, top_k=0, top_p=1.0, min_p=0.0, typical_p=1.0,
            logits_processor=LogitsProcessorList(processors),
        ):
            tokens.append(token)
            if token == job["model"]["eos"] or len(tokens) == job["horizon"]:
                break
        held = engine.input_ids[: engine.n_tokens].tobytes() + repr(vars(processors[0])).encode()
        rows.append([tokens, len(calls), hashlib.sha256(held).hexdigest()])
    result[arm] = rows
print(json.dumps(result))
"""
"""The engine by itself: nothing of it is watched but how often it evaluates."""

WATCHED = """
import hashlib, json, sys
sys.path.insert(0, {root!r})
job = json.loads(sys.stdin.read())
from harness.adapters.base import Arm
from harness.adapters.llamacpp import LlamaCppAdapter
from harness.choices.llamacpp_hooks import Request

adapter = LlamaCppAdapter()
adapter.open(job["configuration"], job["model"], job["prompt"], None)
opened, result = adapter._opened, {{}}
for arm in ("off", "on"):
    engine = opened.engine(arm == "on")
    program = adapter.program(Arm(id=arm, role="x", speculation=arm == "on"))
    make = opened.features.processors[0]
    rows = []
    for seed in job["seeds"]:
        kept = []
        def remembered():
            kept.append(make())
            return kept[-1]
        object.__setattr__(opened.features, "processors", (remembered,))
        outcome = program._watched(Request(chooser=None), seed)
        held = engine.llama.input_ids[: engine.llama.n_tokens].tobytes() + repr(vars(kept[-1])).encode()
        rows.append([outcome["tokens"], engine.probe.evaluations, hashlib.sha256(held).hexdigest()])
    object.__setattr__(opened.features, "processors", (make,))
    result[arm] = rows
print(json.dumps(result))
"""
"""The same with every wrapper in place, those of the choices too."""


def script(python: str, text: str, job: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-I", "-c", text.format(root=str(ROOT))],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module", params=lcp.VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    return lcp.lcp_python(request.param)


@pytest.fixture(scope="module")
def session(python: str) -> Iterator[Session]:
    with Session(python) as session:
        yield session


def test_wrappers_change_neither_outputs_nor_calls_nor_state(python: str, session: Session) -> None:
    job = {
        "model": MODEL,
        "prompt": PROMPT,
        "horizon": HORIZON,
        "drafter": lcp.DRAFTER,
        "least": 3,
        "seeds": list(range(150)),
        "configuration": lcp.configuration(FEATURES["min-tokens"]),
    }
    bare, watched = script(python, BARE, job), script(python, WATCHED, job)
    assert bare == watched
    assert bare["off"] != bare["on"], "the engine's fault shows on these seeds"
    lcp.start(session, FEATURES["min-tokens"])
    for arm in ARMS:
        assert [draw["outcome"]["tokens"] for draw in drawn(session, arm, range(150))] == [
            tokens for tokens, _, _ in bare[arm]
        ]


def test_the_fingerprint_is_the_same_after_draws_and_a_walk(session: Session) -> None:
    before = session.ask("fingerprint").ok["digest"]
    lcp.start(session, lcp.PARITY, 2)
    drawn(session, "on", range(5))
    lcp.walk(session, "on")
    assert session.ask("fingerprint").ok["digest"] == before


def test_the_engine_takes_the_low_32_bits_of_a_seed(session: Session) -> None:
    lcp.start(session, {})
    seeds = [5, 6, 2**32 - 2]
    expected = drawn(session, "on", seeds)
    assert expected[0] != expected[1]
    assert drawn(session, "on", [seed + 7 * 2**32 for seed in seeds]) == expected
    # All ones is the engine's word for any seed.
    assert drawn(session, "on", [2**32 - 1, 2**64 - 1]) == [expected[2]] * 2


def lookup(ids: list[int]) -> list[int]:
    """What prompt lookup proposes after these tokens, by its description."""
    longest, most = lcp.DRAFTER["max_ngram"], lcp.DRAFTER["max_tokens"]
    for size in range(min(longest, len(ids) - 1), 0, -1):
        for at in range(len(ids) - size):
            if ids[at : at + size] == ids[-size:]:
                return ids[at + size : at + size + most]
    return []


def counted(tokens: list[int]) -> dict[str, int]:
    """What a request that returned these tokens must have proposed, verified and accepted."""
    counts = {"proposals": 0, "verifications": 0, "accepted": 0}
    at = 1  # nothing is proposed with the prompt
    while at < len(tokens):
        proposal = lookup([*PROMPT, *tokens[:at]])
        counts["proposals"] += len(proposal)
        counts["verifications"] += bool(proposal)
        for hoped in proposal:
            if at == len(tokens) or tokens[at] != hoped:
                break
            counts["accepted"] += 1
            at += 1
        at += 1
    return counts


def test_counters(session: Session) -> None:
    lcp.start(session, {})
    found = drawn(session, "on", range(300))
    assert [draw["counters"] for draw in found] == [counted(draw["outcome"]["tokens"]) for draw in found]
    assert sum(draw["counters"]["accepted"] for draw in found) > 10
    assert all(not any(draw["counters"].values()) for draw in drawn(session, "off", range(50)))


def test_return_maps(session: Session) -> None:
    lcp.start(session, {})
    for draw in drawn(session, "off", range(100)):
        tokens = draw["outcome"]["tokens"]
        assert draw["outcome"]["finish"] is None
        assert len(tokens) == HORIZON or tokens[-1] == EOS
        assert EOS not in tokens[:-1]
    lcp.start(session, {"api": "create_completion", "stop": ["b"]})
    finishes = set()
    for draw in drawn(session, "off", range(100)):
        tokens, finish = draw["outcome"]["tokens"], draw["outcome"]["finish"]
        finishes.add(finish)
        assert EOS not in tokens and 1 not in tokens
        assert finish == "stop" or len(tokens) == HORIZON
    assert finishes == {"stop", "length"}


def test_the_largest_context_that_is_allowed_is_enough(session: Session) -> None:
    long = [0, 1, 2, 3] * 12
    for api in ("generate", "create_completion"):
        configuration = lcp.configuration({"api": api}, MODEL["context"] - len(long))
        lcp.start(session, {}, configuration=configuration, prompt=long)
        assert all("tokens" in draw["outcome"] for arm in ARMS for draw in drawn(session, arm, range(5)))
    with pytest.raises(JobError, match="longer than the model's context"):
        lcp.start(session, {}, configuration=lcp.configuration({}, 17), prompt=long)


OWN = str(Path(__file__).with_name("lcp_processors.py"))
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown": ({"colour": 1}, BAD_REQUEST, "no such parameter"),
    "of the other method": ({"temperature": 1.0}, BAD_REQUEST, "no such parameter"),
    "method": ({"api": "embed"}, BAD_REQUEST, "is not one of"),
    "fixed": ({"reset": False}, BAD_REQUEST, "not for a configuration"),
    "return": ({"api": "create_completion", "echo": True}, UNSUPPORTED, "not supported"),
    "type": ({"temp": "hot"}, BAD_REQUEST, "wrong type"),
    "bool": ({"top_k": True}, BAD_REQUEST, "wrong type"),
    "stop": ({"api": "create_completion", "stop": [""]}, BAD_REQUEST, "nonempty"),
    "bias": ({"api": "create_completion", "logit_bias": {"a": 1}}, BAD_REQUEST, "logit_bias"),
    "minimum": ({"min_tokens": -1}, BAD_REQUEST, "nonnegative"),
    "builtin": ({"processors": [{"builtin": "nope"}]}, BAD_REQUEST, "prefix-parity"),
    "processors": ({"processors": {}}, BAD_REQUEST, "not a list"),
    "own class": (
        {"processors": [{"file": OWN, "class": "Absent", "arguments": {}}]},
        BAD_REQUEST,
        "no class",
    ),
    "grammar": ({"grammar": "root ::= ("}, BAD_REQUEST, "grammar"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_cannot_take_is_refused(session: Session, name: str) -> None:
    features, code, said = REFUSED[name]
    with pytest.raises(JobError, match=said) as caught:
        lcp.start(session, features)
    assert caught.value.code == code


def test_other_refusals(session: Session) -> None:
    with pytest.raises(JobError, match="no drafter of kind"):
        lcp.start(session, {}, configuration=lcp.configuration({}, drafter={"kind": "assistant"}))
    with pytest.raises(JobError, match=r"drafter.max_ngram is missing"):
        lcp.start(
            session,
            {},
            configuration=lcp.configuration({}, drafter={"kind": "prompt-lookup", "max_tokens": 2}),
        )
    with pytest.raises(JobError, match="multiple of twice"):
        lcp.start(session, {}, model=MODEL | {"heads": 3})
    with pytest.raises(JobError, match="one letter"):
        model = MODEL | {"vocab": ["aa", *MODEL["vocab"][1:]]}
        lcp.start(session, {"api": "create_completion"}, model=model)
    lcp.start(session, {}, configuration=lcp.configuration({}, drafter=None))
    with pytest.raises(JobError, match="has no drafter"):
        drawn(session, "on", [1])
    with pytest.raises(JobError, match="one row"):
        session.ask("draws", arm=ARMS["off"], seeds=["1"], rows=2)


MIRROR = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
import json, llama_cpp
from harness.adapters import llamacpp_mirror as mirror
source = Path(llama_cpp.llama.__file__).read_text()
version = llama_cpp.__version__
lines = source.splitlines()
changed = {{}}
for text, numbers in mirror.LINES:
    if version in numbers:
        other = list(lines)
        other[numbers[version] - 1] += " or True"
        changed[f"{{numbers[version]}} {{text}}"] = mirror.differences(version, "\\n".join(other))
print(json.dumps([mirror.differences(version, source), changed, mirror.differences("0.0.1", source),
    mirror.differences(version, "\\n" + source)]))
"""


def test_every_mirrored_line_is_where_it_was_and_a_change_is_noticed(python: str) -> None:
    done = subprocess.run(
        [python, "-I", "-c", MIRROR.format(root=str(ROOT))], capture_output=True, text=True, check=True
    )
    intact, changed, unknown, moved = json.loads(done.stdout)
    assert intact == [] and len(changed) >= 25
    assert all(len(found) == 1 and found[0].startswith("line ") for found in changed.values())
    assert unknown == ["nothing is known of version 0.0.1"]
    assert len(moved) == len(changed)


def test_an_engine_whose_mirrored_lines_changed_has_no_oracle(python: str) -> None:
    prelude = (
        "from harness.adapters import llamacpp_mirror as m\n"
        "m.LINES = (('sampler.add_top_k(top_k + 1)', {'0.3.19': 758, '0.3.35': 784}),)"
    )
    with Session(python, prelude=prelude) as session:
        lcp.start(session, {})
        with pytest.raises(JobError, match="does not mirror") as caught:
            session.ask("law")
        assert caught.value.code == UNSUPPORTED


def test_processors_beside_a_bias_have_no_oracle(session: Session) -> None:
    """The engine drops all of them: `logits_processor.extend(...)` returns None."""
    lcp.start(session, {"api": "create_completion", "logit_bias": {"0": 1.0}, "min_tokens": 4})
    with pytest.raises(JobError, match="drops"):
        session.ask("law")
    assert any(len(draw["outcome"]["tokens"]) < 4 for draw in drawn(session, "off", range(300)))


def test_a_processor_that_raises_is_passed_over(python: str) -> None:
    """The engine calls it from C, where an exception is printed and forgotten."""
    broken = {"processors": [{"file": OWN, "class": "Raising", "arguments": {}}]}
    with Session(python) as session:
        lcp.start(session, {})
        plain = drawn(session, "on", range(20))
        lcp.start(session, broken)
        assert drawn(session, "on", range(20)) == plain
