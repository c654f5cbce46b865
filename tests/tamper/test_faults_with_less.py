"""Whatever else is removed or altered, a study that is refused stays refused by both programs.

tests/property/test_evidence_removed.py does this for a study of edition 1 and a few faults, with many changes
of each. Here it is every fault of this folder, and the richest studies there are: cosigned, stamped, amended,
relocated, closed, with revoked keys, attempts and second results. A few of each are drawn by a seed;
`KILL_POINTS` above its default tries all.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import seals
import tools
from lives import copy_of
from test_tamper import FAULTS, load

from audits.cli import main as auditor
from prereg.errors import PreregError
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths

MANY = int(os.environ.get("KILL_POINTS", "12")) > 12
CHANGES = 5 if MANY else 3
"""Files of a refused study that are removed or altered, one after the other put back."""
PLACES = [
    ("", "audited"),
    ("exact", "audited"),
    ("second", "audited"),
    ("third", "audited"),
    ("signed", "closed"),
    ("heads", "audited"),
]
Places = Callable[[str, str], Path]


def judged(name: str) -> bool:
    """Whether a fault is of the files alone, and both programs are to refuse it."""
    fault = load(name)
    return (
        {"verify", "auditor"} <= {*fault.CAUGHT_BY}
        and not hasattr(fault, "ENV")
        and not hasattr(fault, "OPEN")
    )


JUDGED = [name for name in FAULTS if judged(name)]
CHOSEN = JUDGED if MANY else sorted(random.Random(20_261_130).sample(JUDGED, 12))


def content(study: Path) -> set[str]:
    """Who is content with a study."""
    found = set()
    with contextlib.suppress(PreregError):
        if all(step.status != "failed" for step in verify_report(StudyPaths(root=study))):
            found.add("verify")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if auditor([str(study)]) == 0:
            found.add("auditor")
    return found


def files_of(study: Path) -> dict[Path, bytes]:
    """Every regular file of the study and of trust, but those that a fault made longer than any may be."""
    places = (study, study.parent.parent / "trust")
    # Not by Python: a fault may have folders deeper than it can follow.
    command = ["find", *map(str, places), "-type", "f", "-size", "-262145k", "-print0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    every = (Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name)
    return {file: file.read_bytes() for file in every}


def drawn(files: list[Path], chance: random.Random, count: int) -> list[Path]:
    """Some of the files; most of them are code, and those of the evidence are drawn as often."""
    code = [file for file in files if "code" in file.parts]
    rest = [file for file in files if "code" not in file.parts]
    return chance.sample(rest, min(count - 1, len(rest))) + chance.sample(code, min(1, len(code)))


def change(file: Path, data: bytes, chance: random.Random) -> str:
    """Remove a file, or alter one byte of it; returns what was done."""
    file.unlink()
    if not data or chance.random() < 0.6:
        return f"{file.name} removed"
    at = chance.randrange(len(data))
    file.write_bytes(data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :])
    return f"byte {at} of {file.name} altered"


@pytest.mark.parametrize("name", CHOSEN)
def test_a_fault_stays_refused(
    name: str, place_of: Places, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("group", "tampering, and more removed")
    fault = load(name)
    study = copy_of(place_of(getattr(fault, "STUDY", ""), getattr(fault, "AT", "audited")), tmp_path / "copy")
    before = files_of(study)
    study = fault.apply(study, tools) or study
    assert content(study) == set()
    kept = sorted(file for file, data in files_of(study).items() if before.get(file) == data)
    chance = random.Random(name)
    for file in drawn(kept, chance, CHANGES):
        mode = file.stat().st_mode
        done = change(file, before[file], chance)
        assert content(study) == set(), done
        file.write_bytes(before[file])
        file.chmod(mode)
    subprocess.run(["rm", "-rf", str(tmp_path / "copy")], check=True)


def revoked(study: Path) -> None:
    """A cosigner's key is superseded, long after it signed."""
    seals.revoke(study, "cyd", "superseded", "2030-01-01T00:00:00.000000+00:00")
    tools.git(study, "add", "-A", str(study.parent.parent / "trust"))
    tools.git(study, "commit", "-q", "-m", "Revoke a key")


@pytest.mark.parametrize(("kind", "state"), PLACES)
def test_one_by_one(
    kind: str, state: str, place_of: Places, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """From a sound study on, files go one after the other: who has refused once refuses for ever."""
    record_property("group", "evidence removed one by one")
    study = copy_of(place_of(kind, state), tmp_path / "copy")
    if kind == "signed":
        revoked(study)
    left = content(study)
    assert left == {"verify", "auditor"}
    files, chance = files_of(study), random.Random(kind)
    for file in drawn(sorted(files), chance, 12 if MANY else 5):
        done = change(file, files[file], chance)
        now = content(study)
        assert now <= left, done
        left = now
    assert left == set()
    subprocess.run(["rm", "-rf", str(tmp_path / "copy")], check=True)


@pytest.mark.parametrize(("kind", "state"), PLACES)
def test_any_one_file_is_missed(
    kind: str, state: str, place_of: Places, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A sound study without one of its files is refused by both: no file is there for nothing."""
    record_property("group", "one file removed")
    study = copy_of(place_of(kind, state), tmp_path / "copy")
    if kind == "signed":
        revoked(study)
    files = files_of(study)
    every = [file for file in sorted(files) if MANY or "code" not in file.parts]
    for file in every if MANY else random.Random(kind).sample(every, 6):
        mode = file.stat().st_mode
        file.unlink()
        assert content(study) == set(), file.relative_to(tmp_path)
        file.write_bytes(files[file])
        file.chmod(mode)
    subprocess.run(["rm", "-rf", str(tmp_path / "copy")], check=True)
