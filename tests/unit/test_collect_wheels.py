"""Packages that come as source alone: compiled once, with the build's own arguments, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from prereg.collect import installer
from prereg.collect.runtime import (
    Build,
    build_environment,
    built,
    environment_folder,
    interpreter,
    parse_build,
)
from prereg.collect.wheels import (
    NOTE,
    Source,
    compiled_wheel,
    known_wheel,
    split_lock,
    this_machine,
    wheel_place,
)
from prereg.errors import EngineFailed, UsageError
from prereg.store.layout import harness_root
from tests.unit.silent import Silent

BACKEND = """
import os, pathlib, time, zipfile

NAME = "toyc-1.0-py3-none-any.whl"


def build_wheel(folder, settings=None, metadata=None):
    print("[1/1] Building toyc", flush=True)
    log = pathlib.Path(os.environ["TOYC_LOG"])
    with log.open("a") as stream:
        stream.write("compiled\\n")
    time.sleep(float(os.environ.get("TOYC_SECONDS", "0")))
    if os.environ.get("TOYC_FAILS"):
        raise SystemExit("toyc: no compiler here")
    info = "toyc-1.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder, NAME), "w") as archive:
        archive.writestr("toyc.py", f"ARGUMENTS = {os.environ['CMAKE_ARGS']!r}\\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: toyc\\nVersion: 1.0\\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        files = ["toyc.py", *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD"))]
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\\n" for name in files))
    return NAME
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
INFO = "Metadata-Version: 2.1\nName: toyc\nVersion: 1.0\n"


class Notes(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The lock of a package that is a source archive without any C in it."""
    folder = tmp_path / "archives"
    folder.mkdir()
    archive = folder / "toyc-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in (("backend.py", BACKEND), ("pyproject.toml", PROJECT), ("PKG-INFO", INFO)):
            member = tarfile.TarInfo(f"toyc-1.0/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    monkeypatch.setenv("PREREG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TOYC_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("CMAKE_ARGS", "-DOF_THE_USER=ON")
    monkeypatch.delenv("PREREG_PYTHON", raising=False)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f"toyc==1.0 \\\n    --hash=sha256:{digest}\n    # via nobody\n".encode()


def toy(lock: bytes, *cmake: str, name: str = "toy") -> Build:
    return Build(
        name=name,
        adapter="command",
        python="3.11",
        requests_per_second={},
        unhashed=(),
        lock=lock,
        compiled=(Source(package="toyc", cmake=cmake),),
    )


def arguments(folder: Path) -> str:
    code = "import sys, toyc; sys.stdout.write(toyc.ARGUMENTS)"
    return subprocess.run(
        [interpreter(folder), "-c", code], capture_output=True, text=True, check=True
    ).stdout


def compilations(tmp_path: Path) -> int:
    log = tmp_path / "log"
    return log.read_text().count("compiled") if log.exists() else 0


def test_it_is_compiled_once_for_all_builds_with_the_builds_arguments(lock: bytes, tmp_path: Path) -> None:
    notes = Notes()
    first = build_environment(toy(lock, "-DA=1", "-DB=2"), notes)
    assert arguments(first) == "-DA=1 -DB=2"
    assert any("Building wheel" in text for text in notes.texts)
    second = build_environment(toy(lock, "-DA=1", "-DB=2", name="other"), notes)
    assert arguments(second) == "-DA=1 -DB=2" and second != first
    assert compilations(tmp_path) == 1
    assert any("toyc 1.0 was compiled before" in text for text in notes.texts)
    markers = [
        built(toy(lock, "-DA=1", "-DB=2")),
        built(toy(lock, "-DA=1", "-DB=2", name="other")),
    ]
    assert markers[0] is not None and markers[1] is not None
    assert markers[0].fingerprint == markers[1].fingerprint


def test_the_steps_of_a_compilation_are_told_now_and_then(
    lock: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    often, seldom = Notes(), Notes()
    monkeypatch.setattr(installer, "EVERY", 0.0)
    build_environment(toy(lock), often)
    assert any(re.fullmatch(r"\s+\[1/1\] Building toyc \(\d+ s\)", text) for text in often.texts), often.texts
    monkeypatch.setattr(installer, "EVERY", 600.0)
    build_environment(toy(lock, "-DA=1"), seldom)
    assert not any("[1/1]" in text for text in seldom.texts)
    assert compilations(tmp_path) == 2


def test_other_arguments_are_another_wheel_and_another_environment(lock: bytes, tmp_path: Path) -> None:
    one, two = toy(lock, "-DA=1"), toy(lock, "-DA=2")
    assert environment_folder(one) != environment_folder(two)
    assert [arguments(build_environment(build, Silent())) for build in (one, two)] == ["-DA=1", "-DA=2"]
    assert compilations(tmp_path) == 2
    prints = [marker.fingerprint for build in (one, two) if (marker := built(build)) is not None]
    assert len(set(prints)) == 2


def test_only_the_hashed_archive_is_compiled(lock: bytes, tmp_path: Path) -> None:
    other = lock.replace(lock[lock.index(b"sha256:") + 7 :][:64], b"0" * 64)
    with pytest.raises(EngineFailed, match=r"(?i)hash"):
        build_environment(toy(other), Silent())
    assert compilations(tmp_path) == 0


def test_two_builds_at_once_compile_once(
    lock: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYC_SECONDS", "2")
    notes = [Notes(), Notes()]
    threads = [
        threading.Thread(target=build_environment, args=(toy(lock, name=name), note))
        for name, note in zip(("one", "two"), notes, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compilations(tmp_path) == 1
    assert any("waiting" in text for note in notes for text in note.texts)
    assert built(toy(lock, name="one")) is not None and built(toy(lock, name="two")) is not None


def test_a_failed_compilation_shows_its_end_and_leaves_nothing_half(
    lock: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYC_FAILS", "1")
    with pytest.raises(EngineFailed, match="no compiler here"):
        build_environment(toy(lock), Silent())
    assert built(toy(lock)) is None
    monkeypatch.delenv("TOYC_FAILS")
    build_environment(toy(lock), Silent())
    assert compilations(tmp_path) == 2
    left = {path.name.split(".")[-1] for path in (tmp_path / "cache" / "wheels").iterdir() if path.is_dir()}
    assert not any("part" in name for name in left)


def test_a_build_killed_while_it_compiles_does_not_count(
    lock: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOYC_SECONDS", "30")
    code = (
        "from prereg.collect.runtime import Build, build_environment\n"
        "from prereg.collect.wheels import Source\n"
        "from tests.unit.silent import Silent\n"
        "build_environment(Build(name='toy', adapter='command', python='3.11', requests_per_second={}, "
        f"unhashed=(), lock={lock!r}, compiled=(Source(package='toyc', cmake=()),)), Silent())"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=harness_root().parent) as process:
        deadline = time.monotonic() + 60
        while compilations(tmp_path) == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert compilations(tmp_path) == 1
    monkeypatch.setenv("TOYC_SECONDS", "0")
    build_environment(toy(lock), Silent())  # its lock died with it
    assert compilations(tmp_path) == 2


def place_of(lock: bytes, tmp_path: Path) -> Path:
    source = toy(lock).compiled[0]
    _, pinned = split_lock(lock, ["toyc"])
    version = ".".join(map(str, sys.version_info[:2]))
    return wheel_place(tmp_path / "cache" / "wheels", source, pinned["toyc"], this_machine(version))


def test_a_damaged_wheel_is_no_wheel_and_compiled_anew(lock: bytes, tmp_path: Path) -> None:
    build_environment(toy(lock), Silent())
    place = place_of(lock, tmp_path)
    wheel, note = known_wheel(place), place / NOTE
    assert wheel is not None
    for path, damaged in ((wheel, wheel.read_bytes() + b"\0"), (note, b"{"), (note, b"[]\n")):
        whole = path.read_bytes()
        path.write_bytes(damaged)
        assert known_wheel(place) is None
        path.write_bytes(whole)
        assert known_wheel(place) == wheel
    note.unlink()
    assert known_wheel(place) is None
    build_environment(toy(lock, name="other"), Silent())
    assert compilations(tmp_path) == 2


def test_a_compilation_without_a_wheel_is_a_failure(lock: bytes, tmp_path: Path) -> None:
    """An installer that does nothing makes none."""
    _, pinned = split_lock(lock, ["toyc"])
    with pytest.raises(EngineFailed, match="compiled to 0 wheels"):
        compiled_wheel(
            toy(lock).compiled[0],
            pinned["toyc"],
            place_of(lock, tmp_path),
            pip=["/bin/true"],
            name="toy",
            progress=Silent(),
        )


SPEC = (
    '{"name":"toy","adapter":"command","python":"3.11","requests_per_second":{},"unhashed":[],'
    '"compiled":[{"package":"toyc","cmake":["-DA=1"]}]}'
)


def test_a_lock_is_split_where_an_entry_ends(lock: bytes) -> None:
    whole = b"a==1 \\\n    --hash=sha256:" + b"1" * 64 + b"\n    # via toyc\n" + lock + b"z==2 --hash=x\n"
    rest, pinned = split_lock(whole, ["ToyC"])
    assert b"toyc==" not in rest and rest.count(b"==") == 2
    assert pinned["ToyC"].version == "1.0" and len(pinned["ToyC"].hashes) == 1
    assert split_lock(rest, ["toyc"]) == (rest, {})


@pytest.mark.parametrize("change", ["absent", "two"])
def test_a_source_package_is_pinned_to_one_archive(lock: bytes, change: str) -> None:
    assert parse_build("toy", SPEC.encode(), lock, where="x").compiled == toy(lock, "-DA=1").compiled
    text = lock.decode()
    wrong = (
        "a==1\n"
        if change == "absent"
        else text.replace("    # via", "    --hash=sha256:" + "0" * 64 + "\n    # via")
    )
    with pytest.raises(UsageError, match="one archive"):
        parse_build("toy", SPEC.encode(), wrong.encode(), where="x")
