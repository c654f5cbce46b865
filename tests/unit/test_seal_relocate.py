"""Records that come back from elsewhere: byte for byte, or not at all (docs/formats.md section 19)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest
from prereg.errors import EvidenceIncomplete, PreregError, UsageError, VerificationFailed, WrongState
from prereg.model.seal import Entry
from prereg.seal import finish
from prereg.seal import relocate as relocating
from prereg.seal.relocate import relocate_study
from prereg.seal.trust import Untrusted
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append, read_ledger
from tests.unit.seal_kit import fails
from tests.unit.seal_kit import finish as sign
from tests.unit.second_study import second, second_collected, second_collected_once, second_once
from tests.unit.study_fixture import git, signing_key

__all__ = ["second", "second_collected", "second_collected_once", "second_once"]

GZ, META = "main.fair.old/00000.jsonl.gz", "main.fair.old/00000.meta.json"
OTHER_META = "main.loaded.new/00001.meta.json"


@pytest.fixture
def elsewhere(second_collected: StudyPaths, tmp_path: Path) -> Path:
    """A copy of all records; three files of the study's own are gone, and so from git."""
    place = tmp_path / "archive" / "records"
    shutil.copytree(second_collected.records, place)
    for name in (GZ, META, OTHER_META):
        (second_collected.records / name).unlink()
    git(second_collected.repository, "commit", "-q", "-a", "-m", "Archived")
    return place


def relocate(paths: StudyPaths, other: Path, who: str = "ada", reason: str = "Too large.") -> Entry:
    return relocate_study(
        paths, other, reason=reason, key=signing_key(paths, who), principal=f"{who}@example.org"
    )


def ledger(paths: StudyPaths) -> tuple[Entry, ...]:
    return read_ledger(paths.ledger.read_bytes())


@pytest.mark.parametrize("who", ["ada", "col"])
def test_what_is_missing_is_copied_and_entered(
    second_collected: StudyPaths, elsewhere: Path, who: str
) -> None:
    with pytest.raises(PreregError, match="the file is missing"):
        verify_study(second_collected)
    entry = relocate(second_collected, elsewhere, who)
    verified = verify_study(second_collected)
    assert (verified.state, verified.entries[-1]) == ("collected", entry)
    sizes = {name: len((elsewhere / name).read_bytes()) for name in (GZ, META, OTHER_META)}
    assert entry.body["files"] == [
        {
            "from": str(elsewhere / name),
            "to": f"records/{name}",
            "size": size,
            "sha256": digest((second_collected.records / name).read_bytes()),
        }
        for name, size in sizes.items()
    ]
    assert (elsewhere / GZ).read_bytes() == (second_collected.records / GZ).read_bytes()
    assert git(second_collected.repository, "status", "--porcelain") == ""
    assert all(s.status == "ok" for s in verify_report(second_collected) if s.number != 8)


def test_files_that_are_lost_once_more_come_back_once_more(
    second_collected: StudyPaths, elsewhere: Path
) -> None:
    first = relocate(second_collected, elsewhere)
    for name in (GZ, META, OTHER_META):
        (second_collected.records / name).unlink()
    git(second_collected.repository, "commit", "-q", "-a", "-m", "Archived again")
    assert relocate(second_collected, elsewhere).seq == first.seq + 1
    assert verify_study(second_collected).state == "collected"


def test_where_nothing_is_missing_it_is_refused(second_collected: StudyPaths, tmp_path: Path) -> None:
    shutil.copytree(second_collected.records, tmp_path / "other")
    with pytest.raises(WrongState, match="nothing to relocate"):
        relocate(second_collected, tmp_path / "other")


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def link(file: Path) -> None:
    shutil.move(file, file.parent.parent.parent / "real")
    file.symlink_to(file.parent.parent.parent / "real")


def hard(file: Path) -> None:
    (file.parent.parent.parent / "real").hardlink_to(file)


REFUSED: list[tuple[str, Callable[[Path], object], type[PreregError], str]] = [
    ("other bytes", lambda o: flip(o / OTHER_META), VerificationFailed, "not what the ledger has"),
    ("other bytes of records", lambda o: flip(o / GZ), VerificationFailed, "not what the ledger has"),
    ("a link", lambda o: link(o / META), VerificationFailed, "is a link"),
    (
        "a link that is not needed",
        lambda o: link(o / "main.fair.new/00000.meta.json"),
        VerificationFailed,
        "link",
    ),
    ("a hard link", lambda o: hard(o / META), VerificationFailed, "hard link"),
    ("a linked folder", lambda o: link(o / "main.fair.old"), VerificationFailed, "is a link"),
    ("a strange file", lambda o: (o / "README").write_text("x"), VerificationFailed, "ledger knows"),
    (
        "a shard that was never stored",
        lambda o: shutil.copy(o / META, o / "main.fair.old" / "00009.meta.json"),
        VerificationFailed,
        "ledger knows",
    ),
    ("a gap", lambda o: (o / OTHER_META).unlink(), EvidenceIncomplete, "does not lie there"),
    ("no folder", shutil.rmtree, UsageError, "no folder of records"),
]


@pytest.mark.parametrize(("change", "error", "what"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_before_a_refusal_nothing_is_written(
    second_collected: StudyPaths,
    elsewhere: Path,
    change: Callable[[Path], object],
    error: type[PreregError],
    what: str,
) -> None:
    change(elsewhere)
    before = second_collected.ledger.read_bytes()
    with pytest.raises(error, match=what):
        relocate(second_collected, elsewhere)
    assert second_collected.ledger.read_bytes() == before
    assert not any((second_collected.records / name).exists() for name in (GZ, META, OTHER_META))


def test_strangers_and_the_own_folder_are_refused(second_collected: StudyPaths, elsewhere: Path) -> None:
    with pytest.raises(Untrusted):
        relocate(second_collected, elsewhere, "rex")
    with pytest.raises(UsageError, match="own folder"):
        relocate(second_collected, second_collected.records)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_relocation_that_was_cut_off_is_completed(
    second_collected: StudyPaths, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Killed before the copy of that number; the fourth is that of the head."""
    real, count = relocating.write_whole, 0

    def mortal(path: Path, data: bytes) -> None:
        nonlocal count
        if count == at:
            raise Killed
        count += 1
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(relocating, "write_whole", mortal)
        patch.setattr(finish, "write_whole", mortal)
        with pytest.raises(Killed):
            relocate(second_collected, elsewhere)
    with pytest.raises(WrongState, match="with its own reason"):
        relocate(second_collected, elsewhere, reason="Another.")
    entry = relocate(second_collected, elsewhere)
    assert verify_study(second_collected).entries[-1] == entry
    assert [e.type for e in ledger(second_collected)].count("relocation") == 1


@pytest.mark.parametrize(
    ("change", "step", "what"),
    [
        ({"to": "records/main.fair.old/00009.meta.json"}, 6, "no file of a shard stored before"),
        ({"to": "NOTES.md"}, 6, "no file of a shard stored before"),
        ({"sha256": "0" * 64}, 6, "not the digest that was stored"),
        ({"size": 7}, 7, "is not the size of records/main.fair.old/00000.meta.json"),
        ({"to": f"records/{GZ}"}, 6, "not the digest that was stored"),
    ],
)
def test_verification_holds_a_relocation_against_what_was_stored(
    second_collected: StudyPaths, change: dict[str, Any], step: int, what: str
) -> None:
    data = (second_collected.records / META).read_bytes()
    file = {"from": "/x", "to": f"records/{META}", "size": len(data), "sha256": digest(data), **change}
    seal = ledger(second_collected)[0].body["seal"]
    body = {"seal": seal, "reason": "x", "files": [file]}
    append(second_collected, "relocation", body, "col@example.org")
    sign(second_collected, "col")
    fails(second_collected, step, what)
