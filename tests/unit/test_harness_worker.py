"""The worker as a process: every operation, every refusal, and an engine that misbehaves."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.session import Session
from harness.wire import JobError

FAKE = '''
import os, subprocess
from harness.adapters import base
from harness.wire import JobError

class Fake:
    """An engine that writes wherever it can, and does what its seed says."""
    def open(self, configuration, model, prompt, cwd):
        print("an engine greets on stdout")
        if configuration.get("id") == "bad":
            raise JobError("unsupported", "no such thing")
        return "d" * 64
    def draws(self, arm, seed, rows):
        print("print")
        os.write(1, b"write\\n")
        subprocess.run(["echo", "child"], check=True)
        assert os.path.samestat(os.fstat(0), os.stat(os.devnull)), "the engine can read the requests"
        if seed == "13":
            raise RuntimeError("a bug of the adapter")
        if seed == "14":
            raise MemoryError
        if seed == "15":
            raise SystemExit(9)
        if seed == "16":
            raise KeyboardInterrupt
        return [base.Draw(outcome={"value": f"{seed}.{row}.{arm.id}"}, counters=base.Counters(proposals=row))
                for row in range(rows - (seed == "17"))]
    def kernel(self):
        raise JobError("unsupported", "no oracle")

base.ENGINES = {"fake": base.Engine(module="__main__", factory="Fake", install="it is right here"),
                "gone": base.Engine(module="harness.adapters.nowhere", factory="X", install="say the word")}
'''
ARM = {"id": "on", "role": "test", "speculation": True}
CONFIGURATION = {"id": "good", "adapter": "fake"}


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(sys.executable, prelude=FAKE, patience=20) as session:
        yield session


def opened(session: Session) -> Session:
    assert session.ask("open", configuration=CONFIGURATION, model=None, prompt=None, cwd=None).ok == {
        "model_sha256": "d" * 64
    }
    return session


def refusal(session: Session, op: str, **fields: Any) -> tuple[str, str]:
    with pytest.raises(JobError) as caught:
        session.ask(op, **fields)
    return caught.value.code, caught.value.message


def test_hello(session: Session) -> None:
    ok = session.ask("hello").ok
    assert ok == {"wire": 1, "python": sys.version.split()[0], "pid": session.process.pid}


def test_draws_come_in_order_with_all_their_rows(session: Session) -> None:
    reply = opened(session).ask("draws", arm=ARM, seeds=["5", "0", "18446744073709551615"], rows=2)
    assert reply.ok == {"requests": 3}
    assert [request["seed"] for request in reply.requests] == ["5", "0", "18446744073709551615"]
    zero = {"proposals": 0, "verifications": 0, "accepted": 0}
    assert reply.requests[0]["draws"] == [
        {"outcome": {"value": "5.0.on"}, "counters": zero},
        {"outcome": {"value": "5.1.on"}, "counters": zero | {"proposals": 1}},
    ]


def test_each_request_is_written_as_soon_as_it_is_done() -> None:
    # The second request waits for a file that appears only after the first one's line was read.
    read, write = os.pipe()
    prelude = FAKE.replace('print("print")', f'seed == "1" and os.read({read}, 1)')
    timer = threading.Timer(20, os.write, (write, b"x"))  # so that a failure is no deadlock
    try:
        with Session(sys.executable, prelude=prelude, pass_fds=(read,), patience=20) as session:
            opened(session)
            timer.start()
            lines = session.stream("draws", arm=ARM, seeds=["0", "1"], rows=1)
            assert next(lines)["request"]["seed"] == "0"
            assert timer.is_alive(), "the first line came only after the second request was done"
            os.write(write, b"x")
            assert [sorted(line) for line in lines] == [["id", "request"], ["id", "ok"]]
    finally:
        timer.cancel()
        os.close(read)
        os.close(write)


def test_junk_is_answered_and_the_worker_goes_on(session: Session) -> None:
    for raw in (b"junk\n", b'{"op":"hello","op":"hello","id":1}\n', b"[]\n", b'{"op":"hello"}\n'):
        session.write(raw)
        reply = session.read()
        assert (reply["id"], reply["error"]["code"]) == (None, "bad-request")
    session.write(b'{"op":"hello","id":true}\n')
    assert session.read()["id"] is None
    assert session.ask("hello").ok["wire"] == 1


@pytest.mark.parametrize(
    ("op", "fields", "code", "says"),
    [
        ("dance", {}, "bad-request", "no operation 'dance'"),
        ("draws", {"arm": ARM, "seeds": ["1"], "rows": 1}, "bad-request", "no configuration is open"),
        ("law", {}, "bad-request", "no configuration is open"),
        ("replay", {}, "bad-request", "no configuration is open"),
        ("trace", {"arm": ARM, "seeds": ["1"], "observed": True}, "bad-request", "no configuration is open"),
        ("open", {}, "bad-request", "configuration is missing"),
        ("open", {"configuration": {}}, "bad-request", "adapter is missing"),
        (
            "open",
            {"configuration": {"adapter": "xx"}},
            "bad-request",
            "no adapter 'xx'; there are: fake, gone",
        ),
        ("open", {"configuration": {"adapter": "gone"}}, "unsupported", "say the word"),
        ("open", {"configuration": CONFIGURATION, "prompt": [True]}, "bad-request", "prompt"),
        ("open", {"configuration": CONFIGURATION, "prompt": "abc"}, "bad-request", "prompt"),
        ("open", {"configuration": CONFIGURATION, "model": []}, "bad-request", "model"),
        ("open", {"configuration": CONFIGURATION, "cwd": 3}, "bad-request", "cwd"),
        ("open", {"configuration": CONFIGURATION | {"id": "bad"}}, "unsupported", "no such thing"),
    ],
)
def test_refusals(session: Session, op: str, fields: dict[str, Any], code: str, says: str) -> None:
    got = refusal(session, op, **fields)
    assert got[0] == code
    assert says in got[1]
    assert session.ask("hello").ok["wire"] == 1


def test_an_engine_without_traces_says_so(session: Session) -> None:
    assert refusal(opened(session), "trace", arm=ARM, seeds=["1"], observed=False) == (
        "unsupported",
        "Fake has no trace()",
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": ["01"]}, "not a seed"),
        ({"seeds": ["18446744073709551616"]}, "not a seed"),
        ({"seeds": ["-1"]}, "not a seed"),
        ({"seeds": [1]}, "not a seed"),
        ({"seeds": ["1", ""]}, "not a seed"),
        ({"seeds": ["١"]}, "not a seed"),
        ({"seeds": ["1" * 6000]}, "not a seed"),
        ({"seeds": "123"}, "seeds is missing"),
        ({"rows": 0}, "rows"),
        ({"rows": True}, "rows"),
        ({"rows": 1.0}, "rows"),
        ({"arm": {"id": "on", "role": "test"}}, "speculation is missing"),
        ({"arm": {"id": "on", "role": "test", "speculation": 1}}, "speculation"),
        ({"arm": None}, "arm is missing"),
    ],
)
def test_bad_draws_are_refused_before_the_first_one(
    session: Session, change: dict[str, Any], says: str
) -> None:
    fields: dict[str, Any] = {"arm": ARM, "seeds": ["1"], "rows": 1} | change
    lines = list(opened(session).stream("draws", **fields))
    assert len(lines) == 1, "something was drawn"
    assert lines[0]["error"]["code"] == "bad-request"
    assert says in lines[0]["error"]["message"]


def test_a_failed_open_leaves_nothing_open(session: Session) -> None:
    opened(session)
    refusal(session, "open", configuration=CONFIGURATION | {"id": "bad"})
    assert refusal(session, "draws", arm=ARM, seeds=["1"], rows=1)[1] == "no configuration is open"


def test_a_bug_of_an_adapter_is_an_engine_error_and_the_worker_goes_on(session: Session) -> None:
    opened(session)
    lines = list(session.stream("draws", arm=ARM, seeds=["1", "13", "2"], rows=1))
    assert [line["request"]["seed"] for line in lines[:-1]] == ["1"]
    assert lines[-1]["error"] == {"code": "engine", "message": "RuntimeError: a bug of the adapter"}
    assert session.ask("draws", arm=ARM, seeds=["2"], rows=1).ok == {"requests": 1}


def test_too_few_rows_are_never_passed_on(session: Session) -> None:
    code, message = refusal(opened(session), "draws", arm=ARM, seeds=["17"], rows=3)
    assert code == "engine"
    assert "2 draws for a request of 3" in message


@pytest.mark.parametrize(("seed", "status"), [("14", 1), ("15", 9), ("16", -2)])
def test_what_must_end_the_process_ends_it(session: Session, seed: str, status: int) -> None:
    opened(session)
    with pytest.raises(EOFError):
        session.ask("draws", arm=ARM, seeds=[seed], rows=1)
    assert session.end() == status


def test_close_and_end_of_input_exit_with_0(session: Session) -> None:
    assert session.ask("close").ok == {}
    assert session.process.wait(20) == 0
    with Session(sys.executable) as other:
        other.ask("hello")
        assert other.end() == 0


def test_a_command_needs_no_more_than_the_standard_library() -> None:
    prelude = "import sys; sys.modules['numpy'] = sys.modules['torch'] = None"
    with Session(sys.executable, prelude=prelude) as session:
        configuration = {"adapter": "command", "command": ["{python}", "-c", "print('{\"value\":1}')"]}
        session.ask("open", configuration=configuration, model=None, prompt=None, cwd=None)
        reply = session.ask("draws", arm=ARM, seeds=["1"], rows=1)
        assert reply.requests[0]["draws"][0]["outcome"] == {"value": 1}
        code, message = refusal(session, "open", configuration={"adapter": "hf"})
        assert code == "unsupported"
        assert "hf-5.17.0" in message
