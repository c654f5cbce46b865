"""What every adapter promises, one suite for all: an engine brings a case (harness/builds/README.md)."""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.bench import FEATURES, MODEL, PROMPT, configuration
from harness.session import Session
from harness.wire import JobError
from tests.engines import lcp_environment as lcp
from tests.engines.hf_environment import hf_python

OFF = {"id": "off", "role": "reference", "speculation": False}
ON = {"id": "on", "role": "test", "speculation": True}
ZERO = {"proposals": 0, "verifications": 0, "accepted": 0}

SCRIPT = """
import json, random, sys
arm, seed, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
source = random.Random(f"{arm} {seed}")
for _ in range(rows):
    print(json.dumps({"value": source.randrange(5)}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One adapter with two configurations to open."""

    python: str
    first: dict[str, Any]
    second: dict[str, Any]
    refused: dict[str, Any]
    code: str
    rows: dict[str, int]
    """Rows a request can have, by arm."""
    law: bool
    recorded: dict[str, Any] | None
    """A configuration that asks for records; None for an engine that returns none."""


def command_case(folder: Path) -> Case:
    (folder / "experiment.py").write_text(SCRIPT)
    command = ["{python}", "experiment.py", "{arm}", "{seed}", "{rows}"]
    fields = {"model": None, "prompt": None, "cwd": str(folder)}
    return Case(
        python=sys.executable,
        first={"configuration": {"adapter": "command", "command": command}, **fields},
        second={"configuration": {"adapter": "command", "command": [*command[:3], "7", "{rows}"]}, **fields},
        refused={"configuration": {"adapter": "command", "command": []}, **fields},
        code="bad-request",
        rows={"off": 3, "on": 2},
        law=False,
        recorded=None,
    )


def hf_case() -> Case:
    fields = {"model": MODEL, "prompt": PROMPT, "cwd": None}
    return Case(
        python=hf_python(),
        first={"configuration": configuration(FEATURES["synthid"]), **fields},
        second={"configuration": configuration(FEATURES["guidance"]), **fields},
        refused={"configuration": configuration({"num_beams": 2}), **fields},
        code="unsupported",
        rows={"off": 16, "on": 1},
        law=True,
        recorded={
            "configuration": configuration({"output_scores": True}) | {"records": {"kind": "scores"}},
            **fields,
        },
    )


def lcp_case(version: str) -> Case:
    fields = {"model": lcp.MODEL, "prompt": lcp.PROMPT, "cwd": None}
    return Case(
        python=lcp.lcp_python(version),
        first={"configuration": lcp.configuration(lcp.FEATURES["prefix-parity"]), **fields},
        second={"configuration": lcp.configuration({"temp": 0.7, "top_k": 5}), **fields},
        refused={"configuration": lcp.configuration({"api": "create_completion", "echo": True}), **fields},
        code="unsupported",
        rows={"off": 1, "on": 1},
        law=True,
        recorded={
            "configuration": lcp.configuration(
                {"api": "create_completion", "logprobs": 4}, records={"kind": "logprobs"}
            ),
            **fields,
        },
    )


ENGINES = ["hf", *(f"lcp-{version}" for version in lcp.VERSIONS)]


@pytest.fixture(
    scope="module", params=["command", *(pytest.param(name, marks=pytest.mark.engines) for name in ENGINES)]
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    if request.param == "command":
        return command_case(tmp_path_factory.mktemp("study"))
    return hf_case() if request.param == "hf" else lcp_case(request.param.removeprefix("lcp-"))


@pytest.fixture(scope="module")
def worker(case: Case) -> Iterator[Session]:
    with Session(case.python) as session:
        yield session


@pytest.fixture
def session(worker: Session, case: Case) -> Session:
    """The worker with the first configuration open: loading an engine takes long, opening does not."""
    worker.ask("open", **case.first)
    return worker


def draws(session: Session, case: Case, arm: dict[str, Any], seeds: range | list[int]) -> dict[str, Any]:
    """Draws by seed, each as JSON text."""
    reply = session.ask("draws", arm=arm, seeds=[str(seed) for seed in seeds], rows=case.rows[arm["id"]])
    return {request["seed"]: json.dumps(request["draws"]) for request in reply.requests}


@pytest.mark.parametrize("arm", [OFF, ON], ids=["off", "on"])
def test_every_draw_has_an_outcome_of_a_known_form_and_its_counters(
    session: Session, case: Case, arm: dict[str, Any]
) -> None:
    for text in draws(session, case, arm, range(20)).values():
        rows = json.loads(text)
        assert len(rows) == case.rows[arm["id"]]
        for draw in rows:
            assert sorted(draw) == ["counters", "outcome"]
            assert sorted(draw["outcome"]) in (["finish", "tokens"], ["value"])
            assert draw["counters"].keys() == ZERO.keys()
            assert all(isinstance(count, int) and count >= 0 for count in draw["counters"].values())
            assert draw["counters"]["accepted"] <= draw["counters"]["proposals"]
            assert draw["counters"]["verifications"] <= draw["counters"]["proposals"]
            if arm is OFF:
                assert draw["counters"] == ZERO


@pytest.mark.parametrize("arm", [OFF, ON], ids=["off", "on"])
def test_a_draw_depends_on_its_seed_alone(session: Session, case: Case, arm: dict[str, Any]) -> None:
    """Not on what was drawn before, in which arm, under which configuration, or in which process."""
    seeds = range(100, 112)
    expected = draws(session, case, arm, seeds)
    assert len(set(expected.values())) > 1, "every seed draws the same"
    assert draws(session, case, arm, list(reversed(seeds))) == expected
    draws(session, case, ON if arm is OFF else OFF, range(5))
    assert draws(session, case, arm, seeds) == expected
    session.ask("open", **case.second)
    assert draws(session, case, arm, seeds) != expected
    session.ask("open", **case.first)
    assert draws(session, case, arm, seeds) == expected
    with Session(case.python) as other:
        other.ask("open", **case.first)
        assert draws(other, case, arm, [111, 100, 105]) == {
            seed: expected[seed] for seed in ("111", "100", "105")
        }


def test_the_largest_seed_is_a_seed(session: Session, case: Case) -> None:
    for arm in (OFF, ON):
        assert len(draws(session, case, arm, [2**64 - 1, 0])) == 2


def test_a_refused_configuration_leaves_nothing_open_and_harms_nothing(session: Session, case: Case) -> None:
    expected = draws(session, case, ON, range(3))
    with pytest.raises(JobError) as caught:
        session.ask("open", **case.refused)
    assert caught.value.code == case.code
    with pytest.raises(JobError, match="no configuration is open"):
        draws(session, case, ON, range(3))
    session.ask("open", **case.first)
    assert draws(session, case, ON, range(3)) == expected


def test_the_law_is_a_law_or_there_is_none(session: Session, case: Case) -> None:
    if not case.law:
        with pytest.raises(JobError) as caught:
            session.ask("law")
        assert caught.value.code == "unsupported"
        return
    fast, slow = session.ask("law").ok["law"], session.ask("law", naive=True).ok["law"]
    assert [entry["outcome"] for entry in fast] == [entry["outcome"] for entry in slow]
    assert all(math.isclose(a["p"], b["p"], abs_tol=1e-9) for a, b in zip(fast, slow, strict=True))
    assert math.isclose(math.fsum(entry["p"] for entry in fast), 1.0, abs_tol=1e-9)
    assert all(entry["p"] > 0 for entry in fast)
    texts = [json.dumps(entry["outcome"], sort_keys=True, separators=(",", ":")) for entry in fast]
    assert texts == sorted(set(texts))


def test_asking_for_the_law_leaves_the_draws_as_they_were(session: Session, case: Case) -> None:
    expected = [draws(session, case, arm, range(6)) for arm in (OFF, ON)]
    for naive in (False, True):
        with nullcontext() if case.law else pytest.raises(JobError):
            session.ask("law", naive=naive)
    assert [draws(session, case, arm, range(6)) for arm in (OFF, ON)] == expected


@pytest.mark.parametrize("arm", [OFF, ON], ids=["off", "on"])
def test_without_its_observers_a_request_is_the_same(
    session: Session, case: Case, arm: dict[str, Any]
) -> None:
    """An adapter without observers has no traces."""
    fields = {"arm": arm, "seeds": [str(seed) for seed in range(12)]}
    if case.recorded is None:
        with pytest.raises(JobError) as caught:
            session.ask("trace", observed=True, **fields)
        assert caught.value.code == "unsupported"
        return
    expected = draws(session, case, ON, range(6))
    observed, plain = (
        session.ask("trace", observed=watched, **fields).ok["traces"] for watched in (True, False)
    )
    assert observed == plain
    assert len({json.dumps(trace["outcome"]) for trace in plain}) > 1
    # The observers are there again afterwards: the counters still count.
    assert draws(session, case, ON, range(6)) == expected


@pytest.mark.parametrize("arm", [OFF, ON], ids=["off", "on"])
def test_a_record_tells_of_every_token_with_numbers_that_are_float32(
    session: Session, case: Case, arm: dict[str, Any]
) -> None:
    if case.recorded is None:
        pytest.skip("this engine returns nothing beside its outcome")
    session.ask("open", **case.recorded)
    found = [json.loads(text) for text in draws(session, case, arm, range(12)).values()]
    for draw in (draw for rows in found for draw in rows):
        assert sorted(draw) == ["counters", "outcome", "record"]
        assert len(draw["record"]) == len(draw["outcome"]["tokens"])
        for entry in draw["record"]:
            assert entry["tokens"] == sorted(set(entry["tokens"]))
            assert len(entry["tokens"]) == len(entry["values"]) >= 4
            for value in entry["values"]:
                single = struct.unpack("f", struct.pack("f", value))[0]
                assert abs(single - value) <= 6e-8 * abs(value)
    again = [json.loads(text) for text in draws(session, case, arm, range(12)).values()]
    assert again == found
