"""Stamps of heads (section 22): which of them hold, and where they may lie."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from audits_kit import commit, look
from audits_seals import (
    MIDDLE,
    STAMPER,
    build,
    second,
)
from audits_stamped import (
    ASKED,
    COMPROMISED,
    EARLY,
    FILES,
    HEAD,
    LATE,
    REQUEST,
    SIGNATURE,
    TOKEN,
    Stamped,
    keys,
    study,
    template,
)
from audits_stamps import Stamp, authority, by_openssl

__all__ = ["keys", "study", "template"]


def test_stamps_that_hold_are_told_and_counted(study: Stamped) -> None:
    before = look(study.study).steps[6].applied
    assert "stamped" not in study.told()
    study.stamp(1)
    last = study.line("deviation")
    study.stamp(last, LATE)
    told = study.told()
    assert "line 1 and the head of SHA256:" in told and "stamped 2026-11-29T12:00:00+00:00" in told
    assert f"lines 1 to {last} and the head of" in told and "stamped 2026-11-29T14:00:00+00:00" in told
    assert look(study.study).steps[6].applied == before + 2


def test_a_stamp_as_openssl_makes_it(study: Stamped, tmp_path: Path) -> None:
    folder = study.stamp("audit")
    made = by_openssl(tmp_path / "tsa", (folder / SIGNATURE).read_bytes(), STAMPER, (MIDDLE,))
    for name, data in zip((REQUEST, TOKEN), made, strict=True):
        (folder / name).write_bytes(data)
    study.revoke("rev", at=datetime(2030, 1, 1, tzinfo=UTC))
    assert "stamped" in study.told()


def test_the_folder_of_stamps_may_be_empty_and_none_in_it(study: Stamped) -> None:
    (study.study / "stamps").mkdir()
    study.told()
    (study.study / "stamps/2").mkdir()
    found = study.failing()
    assert found.keys() == {1} and "stamps/2: an empty folder" in found[1]


def test_a_stamp_needs_no_commit_and_one_that_was_committed_stays(study: Stamped) -> None:
    folder = study.stamp("audit")
    study.told()
    commit(study)
    study.told()
    (folder / HEAD).unlink()
    assert {6, 9} == study.failing().keys()
    shutil.rmtree(folder)
    found = study.failing()
    assert (
        found.keys() == {9} and f"stamps/{folder.name}/{TOKEN}: is in HEAD, but not in the folder" in found[9]
    )


def _drop(name: str) -> Callable[[Stamped], object]:
    return lambda c: (c.stamp("audit") / name).unlink()


def _swapped(c: Stamped) -> None:
    """A stamp of one head with the token of another."""
    one, other = c.stamp("audit"), c.stamp("deviation")
    for name in (REQUEST, TOKEN):
        shutil.copy(other / name, one / name)


def _linked(c: Stamped) -> None:
    folder = c.stamp("audit")
    (folder / TOKEN).rename(c.root / "token")
    (folder / TOKEN).symlink_to(c.root / "token")


def _stamp(line: int | str = "audit", **options: Any) -> Callable[[Stamped], object]:
    return lambda c: c.stamp(line, **options)


def _of(line: int | str = "audit", key: str | None = None, **changes: Any) -> Callable[[Stamped], object]:
    def tamper(c: Stamped) -> None:
        number = c.line(line) if isinstance(line, str) else line
        c.stamp(number, key=key, head=c.head(number, **changes))

    return tamper


def _token(change: Callable[[Stamp], Stamp]) -> Callable[[Stamped], object]:
    return lambda c: c.stamp("audit", change=change)


STRANGE = authority("middle", authority("stranger"))
BAD: dict[str, tuple[Callable[[Stamped], object], int, str]] = {
    **{f"no {name}": (_drop(name), 6, f"{name}: missing") for name in FILES},
    "one file more": (lambda c: (c.stamp("audit") / "note").write_text(""), 1, "note: not listed"),
    "a manifest": (lambda c: (c.stamp("audit") / "manifest.json").write_text(""), 1, "not listed"),
    "a folder inside": (lambda c: (c.stamp("audit") / "x").mkdir(), 1, "an empty folder"),
    "an empty folder": (lambda c: (c.study / "stamps/3").mkdir(parents=True), 1, "stamps/3: an empty folder"),
    "a zero before its number": (_stamp(1, home="01"), 1, "stamps/01/"),
    "number zero": (_stamp(1, home="0"), 1, "stamps/0/"),
    "no number": (_stamp(1, home="first"), 1, "stamps/first/"),
    "digits of another script": (_stamp(1, home="\u0661"), 1, "not listed"),
    "a file beside": (lambda c: (c.stamp("audit").parent / HEAD).write_text(""), 1, f"stamps/{HEAD}"),
    "a link": (_linked, 1, "a link"),
    "under another number": (_stamp("audit", home="2"), 6, "/seq: is of line"),
    "under a number that no line has": (_stamp("audit", home="999"), 6, "stamps/999/"),
    "of a line that is not there": (_of(seq=999), 6, "ledger.jsonl has no line 999"),
    "of a line that is no more": (_of(head="0" * 64), 6, "/head: does not agree"),
    "of another study": (_of(study="tidy"), 6, "/study: does not agree"),
    "by another actor": (_of(actor="ann@example.org", key="author"), 6, "/actor: does not agree"),
    "at another time": (_of(time="2026-11-29T09:00:00+00:00"), 6, "/time: does not agree"),
    "of another schema": (_of(schema="prereg/head/v2"), 6, "/schema"),
    "signed by a stranger": (_stamp(key="third"), 6, "is not an allowed key of rev@example.org"),
    "signed by another": (_stamp(key="author"), 6, "is not an allowed key of rev@example.org"),
    "signed for another purpose": (_stamp(namespace="prereg-seal"), 6, "namespace is 'prereg-seal'"),
    "of a signature of another head": (_swapped, 6, "is not the SHA-256 of stamps/"),
    "of other bytes": (_token(lambda s: s.with_(data=b"x")), 6, "the imprint of the token is not"),
    "by an authority that is not believed": (_token(lambda s: s.with_(chain=(STRANGE,))), 6, "no chain"),
    "that was not granted": (_token(lambda s: s.with_(status=2)), 6, "status is 2"),
    "with another nonce": (_token(lambda s: s.with_(nonce=1)), 6, "nonce"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_stamp_that_does_not_hold_fails(study: Stamped, name: str) -> None:
    tamper, number, says = BAD[name]
    tamper(study)
    found = study.failing()
    assert found.keys() == {number} | ({6} if name == "a link" else set()), found
    assert "stamps/" in found[number] and says in found[number]


@pytest.mark.parametrize("name", [name for name in BAD if BAD[name][1] == 6])
def test_a_stamp_that_does_not_hold_saves_nothing(study: Stamped, name: str) -> None:
    study.revoke("rev")
    BAD[name][0](study)
    found = study.failing()
    assert found.keys() == {6, 9} and COMPROMISED in found[9]


def test_a_head_that_is_not_canonical(study: Stamped) -> None:
    study.stamp("audit", head=study.head(study.line("audit")).replace(b",", b", ", 1))
    found = study.failing()
    assert found.keys() == {6} and f"/{HEAD}: " in found[6] and "canonical" in found[6]


def test_a_stamp_is_a_file_of_its_own(study: Stamped) -> None:
    folder = study.stamp("audit")
    os.link(folder / TOKEN, study.root / "elsewhere")
    found = study.failing()
    assert found.keys() == {1} and f"{TOKEN}: a hard link" in found[1]


def test_stamps_alone_are_no_draft(study: Stamped) -> None:
    """What was removed beside them is missed."""
    study.stamp("audit")
    for path in study.study.iterdir():
        if path.name != "stamps":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert look(study.study).result == "FAILED"


def test_a_study_of_edition_2_has_no_stamps(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(timestamp=ASKED["timestamp"], upto="sealed"))
    c = Stamped(builder.root, keys)
    c.stamp(1)
    found = c.failing()
    assert 1 in found and "stamps/1/ledger.head.json: not listed" in found[1]
    c.revoke("ann")
    assert {4, 9} <= c.failing().keys()


def test_a_protocol_without_a_timestamp_has_no_stamps(tmp_path: Path, keys: Path) -> None:
    c = Stamped(build(tmp_path, keys, second(edition=3, upto="sealed")).root, keys)
    (c.study / "stamps").mkdir()
    found = c.failing()
    assert found.keys() == {6} and "stamps/: the protocol asks for no timestamp" in found[6]
    c.stamp(1)
    found = c.failing()
    assert found.keys() == {6} and "asks for no timestamp" in found[6]
    c.revoke("ann")
    assert {4, 6, 9} <= c.failing().keys()


def test_a_stamp_that_does_not_hold_saves_no_other(study: Stamped) -> None:
    """It is of a head that the ledger does not have, by the same key, and from before."""
    study.revoke("ann")
    early, late = study.line("timestamped"), study.line("deviation")
    study.stamp(late, EARLY, head=study.head(late, head="0" * 64))
    study.stamp(early, LATE)
    found = study.failing()
    assert f"stamps/{early}/{SIGNATURE}: " in found[6] and f"stamps/{late}/{HEAD}#/head" in found[6]
