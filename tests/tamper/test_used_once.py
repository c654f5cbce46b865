"""The bytes that are verified are the bytes that are used: no path is opened again after its check."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import verbs
from lives import KEYS, copy_of

from prereg.collect import gates

Places = Callable[[str, str], Path]


def watch(log: Path, study: Path) -> None:
    """Note every file of the study that this process opens."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    inside = False

    def heard(event: str, given: tuple[object, ...]) -> None:
        nonlocal inside
        if event == "open" and not inside and isinstance(given[0], str | bytes):
            inside = True
            name = os.fsdecode(given[0])
            if name.startswith(f"{study}/") and not Path(name).is_dir():
                os.write(out, f"{name}\n".encode())
            inside = False

    sys.addaudithook(heard)


def watch_folders(log: Path, study: Path) -> None:
    """The same for a process that opens files by the descriptor of their folder."""
    real, out = os.open, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        found = real(path, flags, mode, dir_fd=dir_fd)
        name = os.readlink(f"/proc/self/fd/{found}")
        if name.startswith(f"{study}/") and stat.S_ISREG(os.fstat(found).st_mode):
            os.write(out, f"{name}\n".encode())
        return found

    os.open = opened


def test_verification_opens_each_file_once(life: dict[str, Path], tmp_path: Path) -> None:
    study, log = copy_of(life["audited"], tmp_path / "copy"), tmp_path / "log"
    done = verbs.run("verify", study, "", {}, before=partial(watch, log, study))
    assert done.code == 0, done.said
    opened = Counter(Path(line).relative_to(study).as_posix() for line in log.read_text().splitlines())
    assert {"seal/manifest.json", "ledger.jsonl", "coin.py", "analysis/decisions.json"} <= opened.keys()
    assert sum(name.startswith("records/") for name in opened) == 32
    assert {name: times for name, times in opened.items() if times > 1} == {}


@pytest.mark.parametrize("state", ["audited", "closed"])
def test_the_auditor_opens_each_file_once(state: str, place_of: Places, tmp_path: Path) -> None:
    study = copy_of(place_of("" if state == "audited" else "signed", state), tmp_path / "copy")
    log = tmp_path / "log"
    done = verbs.run("auditor", study, "", {}, before=partial(watch_folders, log, study))
    assert done.code == 0, done.said
    opened = Counter(Path(line).relative_to(study).as_posix() for line in log.read_text().splitlines())
    assert {"seal/manifest.json", "ledger.jsonl", "coin.py", "analysis/decisions.json"} <= opened.keys()
    assert {name: times for name, times in opened.items() if times > 1} == {}


def test_verification_opens_each_file_of_a_stamped_and_cosigned_seal_once(
    signed: dict[str, Path], tmp_path: Path
) -> None:
    study, log = copy_of(signed["audited"], tmp_path / "copy"), tmp_path / "log"
    done = verbs.run("verify", study, "", {}, before=partial(watch, log, study))
    assert done.code == 0, done.said
    opened = Counter(Path(line).relative_to(study).as_posix() for line in log.read_text().splitlines())
    assert {"seal/timestamp.tsq", "seal/timestamp.tsr", "seal/cosign/bob@example.org.sig"} <= opened.keys()
    assert sum(name.startswith("seal/lineage/") and name.endswith(".sig") for name in opened) >= 1
    assert {name: times for name, times in opened.items() if times > 1} == {}


def swap_after_the_check(study: Path) -> None:
    """Once everything has been verified, the experiment on the disk is another one."""
    real = gates.verify

    def verified(*given: object) -> object:
        found = real(*given)  # type: ignore[arg-type]
        (study / "coin.py").write_text('raise SystemExit("another experiment")\n')
        return found

    gates.verify = verified  # type: ignore[assignment]


def test_a_file_swapped_between_check_and_use_is_not_used(life: dict[str, Path], tmp_path: Path) -> None:
    study = copy_of(life["sealed"], tmp_path / "copy")
    env = {"PREREG_CACHE": str(life["cache"])}
    sealed = (study / "coin.py").read_bytes()
    done = verbs.run("collect", study, KEYS["collect"], env, before=partial(swap_after_the_check, study))
    assert done.code == 0, done.said
    assert (study / "coin.py").read_bytes() != sealed
    done = verbs.run("verify", study, "", env)
    assert done.code == 1
    assert "coin.py" in done.said
    (study / "coin.py").write_bytes(sealed)
    done = verbs.run("verify", study, "", env)
    assert done.code == 0, done.said
    # What was drawn is what another collection of the same seal drew.
    (other,) = (life["collected"] / "repo" / "studies").iterdir()
    for shard in sorted((study / "records").glob("*/*.jsonl.gz")):
        assert shard.read_bytes() == (other / shard.relative_to(study)).read_bytes()


@pytest.mark.parametrize("verb", ["verify", "auditor"])
def test_nothing_is_written_by_looking(verb: str, life: dict[str, Path], tmp_path: Path) -> None:
    study = copy_of(life["audited"], tmp_path / "copy")
    before = {p: p.stat().st_mtime_ns for p in study.rglob("*")}
    assert verbs.run(verb, study, "", {}).code == 0
    assert {p: p.stat().st_mtime_ns for p in study.rglob("*")} == before
