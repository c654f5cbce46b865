"""Engine builds and their environments: made once, whole or not at all."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest

from prereg.collect import runtime
from prereg.collect.environments import detail_of, differences, fingerprint_at
from prereg.collect.runtime import (
    MARKER,
    Build,
    build_environment,
    build_names,
    built,
    environment_folder,
    environment_of,
    interpreter,
    load_build,
    parse_build,
    sealed_build,
)
from prereg.errors import EngineFailed, UsageError, WrongState
from prereg.store.layout import harness_root
from tests.unit.silent import Silent


class Notes(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PREREG_PYTHON", raising=False)
    return tmp_path / "cache"


def spec(**changes: object) -> Build:
    values: dict[str, object] = {
        "name": "toy",
        "adapter": "command",
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "requests_per_second": {},
        "unhashed": (),
        "lock": b"",
    }
    return Build(**{**values, **changes})  # type: ignore[arg-type]


def test_a_build_is_made_once() -> None:
    notes = Notes()
    folder = build_environment("plain", notes)
    marker = built(load_build("plain"))
    assert marker is not None
    assert notes.texts[-1].endswith(marker.fingerprint)
    assert marker.python.startswith(".".join(map(str, sys.version_info[:2])))
    stamp = (folder / MARKER).stat().st_mtime_ns
    notes.texts.clear()
    assert build_environment("plain", notes) == folder == environment_of("plain")
    assert notes.texts == []
    assert (folder / MARKER).stat().st_mtime_ns == stamp


def test_nothing_is_installed_that_the_lock_does_not_name() -> None:
    folder = build_environment(spec(), Silent())
    taken = fingerprint_at(folder, harness_root().parent)
    assert taken.detail["distributions"] == {}
    assert taken.detail["unowned"] == []


def test_an_unbuilt_environment_is_wrong_state_and_names_the_command() -> None:
    with pytest.raises(WrongState) as caught:
        environment_of("plain")
    assert caught.value.next_step == "prereg build plain"


def test_what_a_killed_build_left_is_made_anew() -> None:
    folder = environment_folder(spec())
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("half a file")
    with pytest.raises(WrongState):
        environment_of(spec())
    build_environment(spec(), Silent())
    assert environment_of(spec()) == folder
    assert not (folder / "bin" / "python").read_bytes().startswith(b"half")


def test_a_marker_of_another_lock_does_not_count() -> None:
    marker = build_environment(spec(), Silent()) / MARKER
    other = spec(lock=b"# another\n")
    environment_folder(other).mkdir()
    (environment_folder(other) / MARKER).write_bytes(marker.read_bytes())
    assert built(other) is None
    (environment_folder(other) / MARKER).write_bytes(b"[]\n")
    assert built(other) is None


def test_two_builds_at_once_make_one_environment() -> None:
    notes = [Notes(), Notes()]
    threads = [threading.Thread(target=build_environment, args=(spec(), n)) for n in notes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = [text for n in notes for text in n.texts]
    assert sum("making the environment" in text for text in said) == 1
    environment_of(spec())


def test_another_lock_is_another_environment() -> None:
    folders = {
        environment_folder(spec()),
        environment_folder(spec(lock=b"# a comment\n")),
        environment_folder(spec(unhashed=("a==1",))),
        environment_folder(spec(python="3.12")),
    }
    assert len(folders) == 4


def test_a_failed_install_shows_the_end_of_pips_output(tmp_path: Path) -> None:
    lock = b"no-such-thing==1.0 --hash=sha256:" + b"0" * 64 + b"\n"
    with pytest.raises(EngineFailed, match=r"ended with status 1[\s\S]*no-such-thing") as caught:
        build_environment(spec(lock=lock), Silent())
    assert caught.value.next_step == "prereg build toy"
    assert built(spec(lock=lock)) is None


def test_only_the_hashed_archive_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "wheels" / "toydist-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    info = "toydist-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toydist.py", "VALUE = 1\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toydist\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/RECORD", f"toydist.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    for lock in (b"toydist==1.0\n", b"toydist==1.0 --hash=sha256:" + b"0" * 64 + b"\n"):
        with pytest.raises(EngineFailed, match=r"(?i)hash"):
            build_environment(spec(lock=lock), Silent())
    lock = b"toydist==1.0 --hash=sha256:" + hashlib.sha256(wheel.read_bytes()).hexdigest().encode() + b"\n"
    build = spec(lock=lock)
    folder = build_environment(build, Silent())
    marker = built(build)
    assert marker is not None
    assert list(marker.detail["distributions"]) == ["toydist"]
    assert marker.fingerprint == fingerprint_at(folder, harness_root().parent).digest


def test_another_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineFailed, match=r"needs Python 3\.99"):
        build_environment(spec(python="3.99"), Silent())
    monkeypatch.setenv("PREREG_PYTHON", "/bin/true")
    with pytest.raises(EngineFailed, match="is no Python") as caught:
        build_environment(spec(), Silent())
    assert "PREREG_PYTHON=" in str(caught.value.next_step)


def test_a_build_killed_in_the_middle_does_not_count(cache: Path) -> None:
    code = (
        "import sys; from prereg.collect import runtime; from tests.unit.silent import Silent\n"
        "runtime._finish = lambda *a: (print('installed', flush=True), __import__('time').sleep(60))\n"
        "runtime.build_environment('plain', Silent())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=harness_root().parent
    ) as p:
        assert p.stdout is not None
        assert p.stdout.readline() == b"installed\n"
        p.kill()
    with pytest.raises(WrongState):
        environment_of("plain")
    started = time.monotonic()
    build_environment("plain", Silent())  # the dead builder's lock is gone with it
    assert time.monotonic() - started < 30


def test_a_changed_file_changes_the_fingerprint_and_is_named() -> None:
    folder = build_environment(spec(), Silent())
    site = next(folder.glob("lib/python*/site-packages"))
    info = site / "toy_dist-1.0.dist-info"
    info.mkdir()
    (site / "toy_dist.py").write_text("VALUE = 1\n")
    (info / "METADATA").write_text("Name: toy-dist\nVersion: 1.0\n")
    (info / "RECORD").write_text("toy_dist.py,,\ntoy_dist-1.0.dist-info/METADATA,,\n")
    runtime._finish(spec(), folder, Silent())
    then = fingerprint_at(folder, harness_root().parent)
    assert differences(detail_of(spec()), then.detail) == []
    (site / "toy_dist.py").write_text("VALUE = 2\n")
    (site / "loose.pth").write_text("\n")
    now = fingerprint_at(folder, harness_root().parent)
    assert now.digest != then.digest
    assert differences(detail_of(spec()), now.detail) == [
        "files of toy-dist 1.0 changed",
        "file loose.pth is new, gone or changed",
    ]


def test_an_environment_that_starts_no_worker_is_an_engine_failure() -> None:
    folder = build_environment(spec(), Silent())
    interpreter(folder).unlink()
    interpreter(folder).symlink_to("/bin/false")
    with pytest.raises(EngineFailed, match="no worker runs in this environment"):
        fingerprint_at(folder, harness_root().parent)


def test_the_sealed_build_decides_over_the_installed_one() -> None:
    text = (
        b'{"name":"plain","adapter":"command","python":"3.11","requests_per_second":{"off":3},"unhashed":[]}'
    )
    files = {
        "code/harness/builds/plain/build.json": text,
        "code/harness/builds/plain/requirements.lock": b"# other\n",
    }
    sealed = sealed_build("plain", files)
    assert sealed.lock == b"# other\n"
    assert sealed.requests_per_second == {"reference": 3.0}
    assert sealed_build("plain", {}) == load_build("plain")


def test_the_shipped_builds_are_readable() -> None:
    assert "plain" in build_names()
    for name in build_names():
        build = load_build(name)
        assert set(build.requests_per_second) <= {"reference", "test"}
    with pytest.raises(UsageError, match="there is no build 'nope'"):
        load_build("nope")


BAD = [
    (b"[]", "not the description"),
    (b"{}", "KeyError"),
    (
        b'{"name":"x","adapter":"a","python":"3","requests_per_second":{},"unhashed":[]}',
        "describes the build 'x'",
    ),
    (
        b'{"name":"toy","adapter":"a","python":"3","requests_per_second":{},"unhashed":["torch"]}',
        "not pinned",
    ),
    (b'{"name":"toy","adapter":"a","python":"3","requests_per_second":{"off":"fast"},"unhashed":[]}', "fast"),
]


@pytest.mark.parametrize(("data", "said"), BAD)
def test_a_bad_build_file_is_a_usage_error(data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_build("toy", data, b"", where="build.json")
