"""Memory that ends says nothing of the evidence: exit code 3 wherever it is found out, and never 1."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from audits_fixture import Builder
from audits_kit import make_keys
from audits_plan import Plan
from audits_tools import ROOT
from cryptography.exceptions import InternalError

from audits import certificates, cli, given, load, rules, seeds
from audits.__main__ import is_shortage
from audits.fault import Fault

AUDITS = ROOT / "audits"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("shortage")
    (base / "keys").mkdir()
    Builder(base / "r", make_keys(base / "keys"), Plan()).build()
    return base / "r/studies/tiny"


def clean(done: subprocess.CompletedProcess[str], code: int) -> str:
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    return said


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def _while_handling(error: Exception, context: Exception) -> Exception:
    error.__context__ = context
    return error


SHORTAGES = {
    "memory": MemoryError(),
    "the system": OSError(12, "x"),
    "a library": ImportError("y.so: failed to map segment from shared object"),
    "its data": ImportError("y.so: cannot map zero-fill pages: Cannot allocate memory"),
    "its threads": ImportError("y.so: cannot allocate memory in static TLS block"),
    "its name": ImportError("y.so: out of memory"),
    "a library in capitals": ImportError("y.so: Failed to map segment from shared object"),
    "a library by hand": OSError("y.so: failed to map segment from shared object"),
}
CHAINS = {
    "a module that came of it": _caused(ImportError("DLL load failed"), MemoryError()),
    "a call that came of it": _caused(SystemError("returned a result with an exception set"), MemoryError()),
    "what went wrong then": _while_handling(AttributeError("x"), SHORTAGES["a library"]),
    "further back": _caused(SystemError("x"), _while_handling(RuntimeError("y"), OSError(errno.ENOMEM, "z"))),
    "zlib": zlib.error("Error -4 while decompressing data"),
    "OpenSSL": InternalError("Unknown OpenSSL error (reason_text=b'malloc failure')", []),
}
OTHERS = {
    "no such module": ImportError("No module named 'y'"),
    "a full disk": OSError(errno.ENOSPC, "out of memory"),
    "a file": FileNotFoundError(errno.ENOENT, "x", "cannot allocate memory"),
    "bad bytes": zlib.error("Error -3 while decompressing data: incorrect header check"),
    "words of the evidence": ValueError("cannot allocate memory"),
    "a call": SystemError("returned NULL without setting an exception"),
}


def _hidden() -> Exception:
    """What was handled, and said to have nothing to do with it."""
    try:
        try:
            raise MemoryError
        except MemoryError:
            raise KeyError("x") from None
    except KeyError as error:
        return error


def test_what_is_a_shortage_and_what_is_not() -> None:
    assert [name for name, error in (SHORTAGES | CHAINS).items() if not is_shortage(error)] == []
    assert [name for name, error in OTHERS.items() if is_shortage(error)] == []
    assert not is_shortage(_hidden())


def test_a_chain_of_errors_that_bites_its_tail() -> None:
    one, two = KeyError("x"), ValueError("y")
    one.__context__, two.__context__ = two, one
    assert not is_shortage(one)


@pytest.mark.parametrize("module", ["__init__", "cli", "fault"])
@pytest.mark.parametrize("name", SHORTAGES)
def test_a_shortage_while_the_auditor_is_loaded(tmp_path: Path, name: str, module: str) -> None:
    """Exit code 1 would say that the evidence fails."""
    _loaded(tmp_path, module, f"raise {SHORTAGES[name]!r}\n")


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemError('x') from MemoryError()\n",
        "try:\n    raise MemoryError\nexcept MemoryError:\n    None.x\n",
    ],
)
def test_an_error_that_came_of_a_shortage_while_the_auditor_is_loaded(tmp_path: Path, text: str) -> None:
    _loaded(tmp_path, "cli", text)


def _loaded(folder: Path, module: str, text: str) -> None:
    shutil.copytree(AUDITS, folder / "audits", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / f"audits/{module}.py").write_text(text)
    command = [sys.executable, "-I", str(folder / "audits"), str(folder)]
    said = clean(subprocess.run(command, capture_output=True, text=True), 3)
    assert len(said.splitlines()) == 1
    assert "nothing was decided" in said


def test_a_library_that_is_not_there_is_no_shortage(tmp_path: Path) -> None:
    shutil.copytree(AUDITS, tmp_path / "audits", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "audits/cli.py").write_text("import nothing_of_that_name\n")
    command = [sys.executable, "-I", str(tmp_path / "audits"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "No module named 'nothing_of_that_name'" in done.stderr


def test_nothing_that_may_find_no_room_is_loaded_before_it_would_be_told() -> None:
    """What stands above the first line that catches anything is in Python itself, or loaded by then."""
    lines = (AUDITS / "__main__.py").read_text().splitlines()
    top = [line for line in lines if line.startswith(("import ", "from "))]
    assert top == ["from __future__ import annotations", "import errno", "import sys"]


@pytest.mark.parametrize("name", [*SHORTAGES, *CHAINS])
def test_every_kind_of_shortage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def short(options: object) -> NoReturn:
        raise (SHORTAGES | CHAINS)[name]

    monkeypatch.setattr(cli, "audit", short)
    assert cli.main([str(tmp_path)]) == 3
    assert "memory" in capsys.readouterr().err


SAID = {
    "its own memory": (128, "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)"),
    "a file of it": (128, "fatal: mmap failed: Cannot allocate memory"),
    "what it unpacks": (128, "fatal: inflate: out of memory"),
    "where it begins to unpack": (128, "fatal: inflateInit: out of memory (no message)"),
    "the second line": (128, "warning: x\nfatal: Out of memory, realloc failed"),
    "its libraries": (
        127,
        "git: error while loading shared libraries: libc.so.6: failed to map segment from shared object",
    ),
    "their data": (
        127,
        "git: error while loading shared libraries: y.so: cannot map zero-fill pages: Cannot allocate memory",
    ),
    "killed": (-signal.SIGKILL, ""),
}
OTHERWISE = {
    "a crash": (-signal.SIGSEGV, ""),
    "a library that is not there": (
        127,
        "git: error while loading shared libraries: y.so: cannot open shared object file: No such file",
    ),
    "a name": (128, "fatal: bad object 'out of memory'"),
    "a name at the end of a remark": (128, "warning: bad name: out of memory"),
}


def _git_says(monkeypatch: pytest.MonkeyPatch, command: str, code: int, text: str) -> None:
    """One command of git ends so, and all others as they do."""
    real = subprocess.run

    def run(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        if command in arguments:
            return subprocess.CompletedProcess([], code, b"", text.encode() + b"\n")
        done: subprocess.CompletedProcess[bytes] = real(arguments, **options)
        return done

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.parametrize("command", ["rev-parse", "diff-tree"])
@pytest.mark.parametrize("name", SAID)
def test_git_that_has_not_memory_enough(
    study: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    command: str,
) -> None:
    _git_says(monkeypatch, command, *SAID[name])
    assert cli.main([str(study)]) == 3
    assert "the memory is not enough" in capsys.readouterr().err


@pytest.mark.parametrize("name", OTHERWISE)
def test_git_that_fails_otherwise(study: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _git_says(monkeypatch, "diff-tree", *OTHERWISE[name])
    assert cli.main([str(study)]) == 1


def _no_room(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


@pytest.mark.parametrize("call", ["open", "scandir", "fstat", "read", "listdir", "walk"])
def test_a_system_that_has_no_memory_for_a_file(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    """It is the file's fault in no step."""
    if call == "walk":
        monkeypatch.setattr(os, "walk", lambda top, onerror: onerror(OSError(errno.ENOMEM, "x")) or [])
        with pytest.raises(OSError, match="x"):
            list(seeds.used(study, "tiny"))
        return
    monkeypatch.setattr(os, call, _no_room)
    try:
        code = cli.main([str(study)])
    finally:
        monkeypatch.undo()
    assert code == 3
    assert "the memory is not enough" in capsys.readouterr().err


@pytest.mark.parametrize(
    "look",
    [
        lambda study: given.read_given(study / "NOTES.md"),
        lambda study: given.read_plain(study / "NOTES.md"),
        lambda study: seeds.reserved(study, "tiny"),
        lambda study: seeds._seeds_of(study / "NOTES.md", "NOTES.md"),
        lambda study: rules._editions(),
        lambda study: load.Folder(study),
    ],
)
def test_whatever_is_opened(
    study: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[Path], object]
) -> None:
    monkeypatch.setattr(os, "open", _no_room)
    with pytest.raises(OSError, match="memory"):
        look(study)
    monkeypatch.undo()


def test_a_folder_of_git_that_cannot_be_looked_at_for_want_of_memory(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe in it would be waited for."""
    real = os.scandir

    def scandir(place: Any = ".") -> Any:
        return _no_room() if ".git" in str(place) else real(place)

    monkeypatch.setattr(os, "scandir", scandir)
    code = cli.main([str(study)])
    monkeypatch.undo()
    assert code == 3
    assert "the memory is not enough" in capsys.readouterr().err


def test_a_study_that_cannot_be_found_for_want_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "is_dir", _no_room)
    code = cli.main([str(tmp_path)])
    monkeypatch.undo()
    assert code == 3
    assert "the memory is not enough" in capsys.readouterr().err


@pytest.mark.parametrize("error", [*SHORTAGES.values(), *CHAINS.values()], ids=[*SHORTAGES, *CHAINS])
def test_a_library_of_certificates_that_finds_no_memory(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, certificates.hostile():
        raise error
    assert raised.value is error
    with pytest.raises(Fault, match="a certificate cannot be used"), certificates.hostile():
        raise OTHERS["words of the evidence"]


class _Short:
    """A decompressor that found no room for its window."""

    def decompress(self, *_: object) -> NoReturn:
        raise zlib.error("Error -4 while decompressing data")


def test_zlib_that_finds_no_memory(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = next((study / "records").glob("*/*.jsonl.gz"))
    monkeypatch.setattr(zlib, "decompressobj", lambda wbits: _Short())
    with pytest.raises(zlib.error):
        load.inflate(shard.read_bytes(), 100)
    with pytest.raises(zlib.error):
        seeds._seeds_of(shard, "x")
