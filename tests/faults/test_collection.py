"""What happens to a collection: workers that crash, hang or lie, disks that fill, clocks, signals, ceilings.

Whatever it is, a study is left that verifies; every draw of a valid unit is there once, and a unit that was
lost is INVALID by name. `KILL_POINTS` above its default tries more of the cases that come in rows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import verbs  # noqa: E402
from desk import BAD_SEED, Desk, copy_of, make_desk  # noqa: E402

MANY = int(os.environ.get("KILL_POINTS", "12")) > 12
BAD_UNIT = "main.fair.new"
Record = Callable[[str, object], None]

SPEAK = f"""import os, time
if seed == {BAD_SEED}:
    for name in os.listdir(f"/proc/{{os.getppid()}}/fd"):
        path = f"/proc/{{os.getppid()}}/fd/{{name}}"
        if os.path.exists(path) and os.readlink(path).startswith("pipe:"):
            try:
                os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), LINE)
            except OSError:
                pass
    time.sleep(0.05)"""
"""A command that writes to everything that its worker speaks through."""

DRAW = {"outcome": {"value": "heads"}, "counters": {"proposals": 0, "verifications": 0, "accepted": 0}}
LINES = {
    "words": b"loading the model ...\n",
    "half a reply": b'{"id":3,"request":{"seed":',
    **{
        f"a reply to request {number}": json.dumps(
            {"id": number, "request": {"seed": str(BAD_SEED), "draws": [DRAW]}}
        ).encode()
        + b"\n"
        for number in (2, 3, 4)
    },
    "an end of its own": b'{"id":3,"ok":{}}\n',
    "bytes": b"\xff\xfe\x00\n",
    "NaN": b'{"id":3,"ok":NaN}\n',
    "depth": b"[" * 5000 + b"\n",
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(found))
        assert verbs.prereg("build", "plain").code == 0
        yield found


@pytest.fixture(scope="module")
def sealed(builds: Path, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return make_desk(tmp_path_factory.mktemp("sealed") / "home", builds)


@pytest.fixture
def desk(sealed: Desk, tmp_path: Path) -> Iterator[Desk]:
    yield copy_of(sealed, tmp_path / "home")
    shutil.rmtree(tmp_path / "home", ignore_errors=True)


def invalid(desk: Desk) -> dict[str, str]:
    """The lost units and why."""
    entries = [json.loads(line) for line in desk.paths.ledger.read_bytes().splitlines()]
    return {e["body"]["unit"]: e["body"]["reason"] for e in entries if e["type"] == "unit-invalid"}


def check(desk: Desk, record: Record, group: str, lost: dict[str, str] | None = None) -> None:
    """Sound, complete but for the units of `lost`, whose reasons are of that form."""
    reasons = invalid(desk)
    assert reasons.keys() == (lost or {}).keys(), reasons
    for unit, form in (lost or {}).items():
        assert re.search(form, reasons[unit]), reasons
    found = desk.faults()
    whole = found["lost"] <= 4 * len(reasons)  # a lost unit has four draws, none of which is asked for again
    record("group", group)
    record("lost", 0 if whole else found["lost"])
    record("doubled", found["doubled"])
    assert whole and found["doubled"] == 0, found
    desk.check_sound()


def test_a_worker_that_is_killed(builds: Path, tmp_path: Path, record_property: Record) -> None:
    prologue = f"import os, signal\nif seed == {BAD_SEED}: os.kill(os.getppid(), signal.SIGKILL)"
    desk = make_desk(tmp_path / "home", builds, prologue)
    assert desk.collect().code == 0
    check(desk, record_property, "worker crash", {BAD_UNIT: "killed by SIGKILL"})


def test_a_worker_that_is_killed_once(builds: Path, tmp_path: Path, record_property: Record) -> None:
    """In edition 3 its unit is tried again, whole, and nothing of it is lost."""
    mark = str(tmp_path / "killed")
    prologue = (
        f"import os, signal\nif seed == {BAD_SEED} and not os.path.exists({mark!r}):\n"
        f"    open({mark!r}, 'x').close(); os.kill(os.getppid(), signal.SIGKILL)"
    )
    desk = make_desk(tmp_path / "home", builds, prologue, {"edition": 3, "attempts": 2})
    done = desk.collect()
    assert done.code == 0, done.said
    assert "tried again: attempt 2 of 2" in done.said
    assert invalid(desk).keys() == {BAD_UNIT}  # as its first attempt
    found = desk.faults()
    record_property("group", "worker crash")
    for name, count in found.items():
        record_property(name, count)
    assert found == {"lost": 0, "doubled": 0}
    desk.check_sound()


@pytest.mark.parametrize("who", ["command", "worker"])
def test_a_worker_that_hangs(who: str, builds: Path, tmp_path: Path, record_property: Record) -> None:
    act = "time.sleep(3600)" if who == "command" else "os.kill(os.getppid(), signal.SIGSTOP)"
    prologue = f"import os, signal, time\nif seed == {BAD_SEED}: {act}"
    desk = make_desk(tmp_path / "home", builds, prologue, request_seconds=4)
    assert desk.collect().code == 0
    check(desk, record_property, "worker hang", {BAD_UNIT: "sent nothing for 4 seconds"})


@pytest.mark.parametrize("name", LINES)
def test_a_command_that_speaks_for_its_worker(
    name: str, builds: Path, tmp_path: Path, record_property: Record
) -> None:
    desk = make_desk(tmp_path / "home", builds, SPEAK.replace("LINE", repr(LINES[name])))
    done = desk.collect()
    assert done.code == 0, done.said
    check(desk, record_property, "garbage on the wire", {BAD_UNIT: "."})


@pytest.mark.parametrize(
    "act", ["print('loading ...')", "print(json.dumps({'value': float('nan')}))", "sys.exit(3)", "os.abort()"]
)
def test_a_command_that_returns_garbage(
    act: str, builds: Path, tmp_path: Path, record_property: Record
) -> None:
    """It is an outcome, and is counted as one: nothing is lost."""
    desk = make_desk(tmp_path / "home", builds, f"import os\nif seed == {BAD_SEED}: {act}")
    done = desk.collect()
    assert done.code == 0
    assert re.search(rf"{BAD_UNIT} +│ +1 ", done.said), done.said
    check(desk, record_property, "garbage from the engine")


CEILINGS = [
    ("request_seconds", 4, "time.sleep(3600)", {BAD_UNIT: "sent nothing for 4 seconds"}),
    ("unit_seconds", 8, "time.sleep(3600)", {BAD_UNIT: "ceiling of time"}),
]


@pytest.mark.parametrize(("name", "seconds", "act", "lost"), CEILINGS, ids=[c[0] for c in CEILINGS])
def test_a_ceiling_of_time(
    name: str,
    seconds: int,
    act: str,
    lost: dict[str, str],
    builds: Path,
    tmp_path: Path,
    record_property: Record,
) -> None:
    prologue = f"import time\nif seed == {BAD_SEED}: {act}"
    desk = make_desk(tmp_path / "home", builds, prologue, **{name: seconds})
    done = desk.collect()
    assert done.code == 0, done.said
    check(desk, record_property, "ceilings", lost)


def test_the_ceiling_of_the_study(builds: Path, tmp_path: Path, record_property: Record) -> None:
    """Nothing of it is left over for a later run: what was not drawn in time is INVALID."""
    desk = make_desk(tmp_path / "home", builds, "import time\ntime.sleep(1.5)", study_seconds=2)
    done = desk.collect()
    assert done.code == 0, done.said
    lost = dict.fromkeys(invalid(desk), "ceiling")
    assert lost
    check(desk, record_property, "ceilings", lost)
    assert desk.collect().code == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("after", [0.0, 0.3, 0.6, 0.9] if MANY else [0.6])
def test_a_signal(number: int, after: float, desk: Desk, record_property: Record) -> None:
    running = desk.start()
    time.sleep(after)
    os.kill(running.pid, number)
    done = running.wait()
    assert done.code in (0, 3, 130, -number), done.said
    if done.code == 3:  # it was drawing: what it had is signed
        assert verbs.run("verify", desk.paths.root, "", desk.env).code == 0
    done = desk.collect()
    assert done.code in (0, 4), done.said
    check(desk, record_property, "SIGINT and SIGTERM")


def test_two_at_once(desk: Desk, record_property: Record) -> None:
    runs = [desk.start() for _ in range(3)]
    done = [run.wait() for run in runs]
    assert sorted(one.code for one in done) == [0, 4, 4], done
    for one in done:
        assert one.code == 0 or "another prereg" in one.said or "is collected" in one.said
    check(desk, record_property, "two collections at once")


@pytest.fixture
def small_disk(sealed: Desk, tmp_path: Path) -> Iterator[Callable[[int], Desk]]:
    """A copy of the study on a file system of its own, with so many bytes to spare."""
    place = tmp_path / "disk"
    place.mkdir()

    def made(spare: int) -> Desk:
        home = sealed.paths.repository.parent
        need = subprocess.run(["du", "-s", "-B4096", str(home)], capture_output=True, text=True, check=True)
        size = (int(need.stdout.split()[0]) + 8) * 4096 + spare
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
        found = copy_of(sealed, place / "home")
        return Desk(paths=found.paths, env={**found.env, "TMPDIR": str(tmp_path)})

    yield made
    subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


@pytest.mark.parametrize("spare", range(0, 120_000, 4096) if MANY else [0, 20_480, 61_440])
def test_a_full_disk(
    spare: int, small_disk: Callable[[int], Desk], tmp_path: Path, record_property: Record
) -> None:
    desk = small_disk(spare)
    done = desk.collect()
    assert done.code in (0, 3, 4), done.said
    assert "Traceback" not in done.said
    remount = ["mount", "-o", "remount,size=64m", str(tmp_path / "disk")]
    subprocess.run(remount, check=True)
    if done.code:
        done = desk.collect()
        assert done.code in (0, 4), done.said
    check(desk, record_property, "full disk")


def test_a_disk_that_can_only_be_read(
    small_disk: Callable[[int], Desk], tmp_path: Path, record_property: Record
) -> None:
    desk = small_disk(1 << 24)
    subprocess.run(["mount", "-o", "remount,ro", str(tmp_path / "disk")], check=True)
    done = desk.collect()
    assert done.code == 3, done.said
    assert "Read-only file system" in done.said
    subprocess.run(["mount", "-o", "remount,rw", str(tmp_path / "disk")], check=True)
    assert desk.collect().code == 0
    check(desk, record_property, "read-only disk")


@pytest.fixture(scope="module")
def broken_off(sealed: Desk, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A collection that was killed with some shards in the ledger and no signed head over them."""
    desk = copy_of(sealed, tmp_path_factory.mktemp("broken") / "home")
    running = desk.start()
    while desk.paths.ledger.read_bytes().count(b"\n") < 4:
        time.sleep(0.01)
    running.kill()
    assert running.wait().code == -signal.SIGKILL
    return desk


@pytest.mark.parametrize("part", [i / 24 for i in range(24)] if MANY else [0.0, 0.5, 0.99])
def test_a_line_that_is_torn(part: float, broken_off: Desk, tmp_path: Path, record_property: Record) -> None:
    """The last line of the ledger, cut off anywhere in it."""
    desk = copy_of(broken_off, tmp_path / "home")
    data = desk.paths.ledger.read_bytes()
    data = data[: data.rindex(b"\n") + 1]
    last = data[:-1].rindex(b"\n") + 1
    desk.paths.ledger.write_bytes(data[: last + int(part * (len(data) - last))])
    done = desk.collect()
    assert done.code == 0, done.said
    check(desk, record_property, "torn line of the ledger")
    shutil.rmtree(tmp_path / "home")


@pytest.mark.parametrize("lock", ["index.lock", "refs/heads/main.lock"])
def test_a_lock_of_a_git_that_was_killed(lock: str, desk: Desk, record_property: Record) -> None:
    """Nobody holds it, so that it stands in nobody's way."""
    (desk.paths.repository / ".git" / lock).write_text("")
    done = desk.collect()
    assert done.code == 0, done.said
    check(desk, record_property, "lock of a killed git")
