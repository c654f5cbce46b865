"""The collector's end of the wire against workers that behave, and against those that do not."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prereg.collect.network import Isolation, isolation
from prereg.collect.worker import Launch, Worker, WorkerLost, WorkerRefused
from prereg.store.layout import harness_root

BARE = Isolation(network="not-cut", reason="a test", prefix=())

MakeWorker = Callable[..., Worker]


@pytest.fixture
def fake(tmp_path: Path) -> MakeWorker:
    """Starts a worker whose whole program is `body`; `say(obj)` sends a line, `ask()` reads a request."""

    def start(body: str, cut: Isolation = BARE) -> Worker:
        code = tmp_path / "code" / "harness"
        code.mkdir(parents=True)
        (code / "__init__.py").write_text("")
        head = (
            "import json, os, signal, subprocess, sys, time\n"
            "def say(value): print(json.dumps(value), flush=True)\n"
            "def ask(): return json.loads(sys.stdin.readline())\n"
            "def main():\n"
        )
        (code / "worker.py").write_text(head + "".join(f"    {line}\n" for line in body.splitlines()))
        return Worker(
            Launch(python=Path(sys.executable), code=code.parent, scratch=tmp_path / "s", isolation=cut)
        )

    return start


def gone(pid: int) -> bool:
    """Whether the process is gone, or only a corpse that nobody has reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_gone(pid: int) -> None:
    until = time.monotonic() + 5
    while not gone(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert gone(pid), f"process {pid} is still there"


def test_it_streams_requests_and_returns_the_ok(fake: MakeWorker) -> None:
    worker = fake("r = ask()\nfor i in range(3): say({'id': r['id'], 'request': i})\nsay({'id': 1, 'ok': r})")
    got: list[int] = []
    with worker:
        ok = worker.call("draws", seeds=["1"], streams={"request": got.append})
    assert got == [0, 1, 2]
    assert ok == {"op": "draws", "id": 1, "seeds": ["1"]}
    wait_gone(worker.pid)


def test_an_error_reply_leaves_the_worker_alive(fake: MakeWorker) -> None:
    worker = fake(
        "ask(); say({'id': 1, 'error': {'code': 'engine', 'message': 'no'}})\nask(); say({'id': 2, 'ok': {}})"
    )
    with worker:
        with pytest.raises(WorkerRefused, match="engine: no"):
            worker.call("open")
        assert worker.call("hello") == {}


LOST = [
    ("dies", "sys.stderr.write('Bus error'); sys.exit(7)", "ended during 'x'; exit status 7.*Bus error"),
    ("is killed", "os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
    ("hangs", "time.sleep(60)", "sent nothing for 0.7 seconds during 'x'"),
    ("stops in a line", "sys.stdout.write('{'); sys.stdout.flush(); time.sleep(60)", "sent nothing for 0.7"),
    (
        "prints garbage",
        "print('Loading model...', flush=True); time.sleep(60)",
        "not JSON: 'Loading model...'",
    ),
    ("sends bytes", "os.write(1, b'\\xff\\xfe\\n'); time.sleep(60)", "not JSON"),
    ("sends a list", "say([1]); time.sleep(60)", "not an object"),
    ("sends NaN", 'print(\'{"id": 1, "ok": NaN}\', flush=True); time.sleep(60)', "not JSON"),
    ("answers another", "say({'id': 7, 'ok': {}}); time.sleep(60)", "answered request 7 instead of 1"),
    ("answers nothing", "say({'id': 1, 'yes': {}}); time.sleep(60)", "no known form"),
]


@pytest.mark.parametrize(("body", "said"), [row[1:] for row in LOST], ids=[row[0] for row in LOST])
def test_a_broken_worker_is_lost_with_a_reason_and_reaped(fake: MakeWorker, body: str, said: str) -> None:
    worker = fake("ask()\n" + body)
    with pytest.raises(WorkerLost, match=said):
        worker.call("x", silence=0.7)
    wait_gone(worker.pid)


def test_a_worker_that_takes_no_input_does_not_block_the_collector(fake: MakeWorker) -> None:
    worker = fake("time.sleep(60)")
    with pytest.raises(WorkerLost, match="sent nothing"):
        worker.call("draws", seeds=["0" * 20] * 50_000, silence=0.7)


def test_lines_after_the_last_reply_are_noticed(fake: MakeWorker) -> None:
    worker = fake('ask()\nos.write(1, b\'{"id":1,"ok":{}}\\n{"id":1,"request":{}}\\n\')\nask()')
    assert worker.call("x") == {}
    with pytest.raises(WorkerLost, match="spoke out of turn"):
        worker.call("y")


def test_each_line_restarts_the_watch(fake: MakeWorker) -> None:
    worker = fake(
        "ask()\nfor i in range(6): time.sleep(0.3); say({'id': 1, 'request': i})\nsay({'id': 1, 'ok': 1})"
    )
    with worker:
        assert worker.call("x", silence=1.0, streams={"request": lambda _: None}) == 1


def test_a_ceiling_ends_a_worker_that_is_talking(fake: MakeWorker) -> None:
    worker = fake("ask()\nwhile True: time.sleep(0.05); say({'id': 1, 'request': 0})")
    end = time.monotonic() + 0.8
    with pytest.raises(WorkerLost, match="ceiling of time"):
        worker.call("x", left=lambda: end - time.monotonic(), streams={"request": lambda _: None})
    assert time.monotonic() < end + 2


def test_much_on_stderr_neither_blocks_nor_stays(fake: MakeWorker) -> None:
    worker = fake(
        "ask()\nfor i in range(40_000): sys.stderr.write(f'warning {i}\\n')\nsay({'id': 1, 'ok': 1})\nask()"
    )
    with worker:
        assert worker.call("x", silence=20) == 1
        assert len(worker.stderr_tail(10**6)) < 100_000


@pytest.mark.parametrize("cut", [BARE, isolation()], ids=["bare", "isolated"])
def test_what_a_worker_has_started_ends_with_it(fake: MakeWorker, cut: Isolation) -> None:
    body = "p = subprocess.Popen(['sleep', '60'])\nask(); say({'id': 1, 'ok': p.pid})\nask()"
    worker = fake(body, cut)
    with worker:
        child = worker.call("x")
        assert not gone(child)
    wait_gone(child)


def test_a_worker_dies_with_a_killed_collector(fake: MakeWorker, tmp_path: Path) -> None:
    body = "open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    read, write = os.pipe()
    collector = os.fork()
    if collector == 0:  # the collector: killed below, in the middle of a call
        try:
            worker = fake(body)
            os.write(write, b"%d" % worker.pid)
            worker.call("x")
        finally:
            os._exit(1)
    pid = int(os.read(read, 20))
    until = time.monotonic() + 10
    while not (tmp_path / "s" / "pid").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not gone(pid)
    os.kill(collector, 9)
    os.waitpid(collector, 0)
    wait_gone(pid)
    os.close(read)
    os.close(write)


def test_the_environment_is_the_collectors_own_making(
    fake: MakeWorker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    with fake(
        "ask(); say({'id': 1, 'ok': [dict(os.environ), sys.path, sys.flags.hash_randomization]})"
    ) as worker:
        seen, path, random_hashes = worker.call("x")
    assert "HF_TOKEN" not in seen
    assert "PYTHONPATH" not in seen
    assert seen["HOME"] == str(tmp_path / "s")
    assert (seen["HF_HUB_OFFLINE"], seen["OMP_NUM_THREADS"]) == ("1", "1")
    assert path[0] == str(tmp_path / "code")
    assert "" not in path
    assert random_hashes == 0


def test_the_network_is_cut_where_it_is_said_to_be(fake: MakeWorker) -> None:
    found = isolation()
    if found.network == "not-cut":
        assert found.reason
        assert found.prefix == ()
        return
    body = (
        "import socket\nask()\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "try:\n    s.connect(('192.0.2.1', 9)); r = 'a route'\nexcept OSError: r = 'none'\n"
        "say({'id': 1, 'ok': r})"
    )
    with fake(body, found) as worker:
        assert worker.call("x") == "none"


def test_the_real_worker_answers(tmp_path: Path) -> None:
    launch = Launch(
        python=Path(sys.executable), code=harness_root().parent, scratch=tmp_path / "s", isolation=BARE
    )
    with Worker(launch) as worker:
        assert worker.call("hello")["wire"] == 1
        with pytest.raises(WorkerRefused, match="no configuration is open"):
            worker.call("draws", arm={"id": "a", "role": "test", "speculation": False}, seeds=["1"], rows=1)
