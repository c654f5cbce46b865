"""Which signatures of compromised keys the stamps of heads save (section 22), and which they do not."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from audits_kit import commit, look
from audits_seals import revoke
from audits_stamped import (
    AT,
    COMPROMISED,
    EARLY,
    HEAD,
    LATE,
    SIGNATURE,
    Stamped,
    copied,
    keys,
    study,
    template,
    young,
)
from audits_tools import run, sign

__all__ = ["keys", "study", "template"]


@pytest.fixture(scope="module")
def unstamped(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    return young(tmp_path_factory.mktemp("young"), keys)


@pytest.fixture
def new(unstamped: Path, keys: Path, tmp_path: Path) -> Stamped:
    return copied(unstamped, tmp_path / "r", keys)


SAVED: dict[str, tuple[str, tuple[int | str, ...], set[int]]] = {
    "the author, with nothing stamped": ("ann", (), {6, 9}),
    "the author's last head": ("ann", ("deviation",), set()),
    "an earlier head of the author": ("ann", ("timestamped",), {6, 9}),
    "another's later head for the author": ("ann", ("audit",), {6, 9}),
    "the collector, with nothing stamped": ("col", (), {9}),
    "the collector's head": ("col", ("collection-ended",), set()),
    "a line of the collector's before": ("col", ("collection-started",), {9}),
    "another's later head for the collector": ("col", ("deviation",), {9}),
    "the cosigner, with nothing stamped": ("bob", (), {4, 9}),
    "the cosigner's head": ("bob", ("cosigned",), set()),
    "another's later head for the cosigner": ("bob", ("audit",), {9}),
    "another's earlier head for the cosigner": ("bob", ("timestamped",), {4, 9}),
    "the reviewer, with nothing stamped": ("rev", (), {8, 9}),
    "the reviewer's head": ("rev", ("audit",), set()),
    "another's later head for the reviewer": ("rev", ("deviation",), {9}),
    "another's earlier head for the reviewer": ("rev", ("collection-ended",), {8, 9}),
}


@pytest.mark.parametrize("name", SAVED)
def test_what_a_stamp_saves_of_a_compromised_key(study: Stamped, name: str) -> None:
    """A stamp of a head holds the lines before it, but other heads only where the same key signed it."""
    who, lines, numbers = SAVED[name]
    study.revoke(who)
    for line in lines:
        study.stamp(line)
    found = study.failing()
    assert found.keys() == numbers, found
    assert all(COMPROMISED in text for text in found.values())


@pytest.mark.parametrize(("who", "line"), [("ann", "deviation"), ("bob", "cosigned"), ("rev", "audit")])
@pytest.mark.parametrize("time", [AT, LATE])
def test_a_stamp_that_is_not_from_before_saves_nothing(
    study: Stamped, who: str, line: str, time: datetime
) -> None:
    """The stamp's own head is by the same key: it fails too."""
    study.revoke(who)
    without = study.failing()
    study.stamp(line, time)
    found = study.failing()
    assert found.keys() == (without.keys() | {6}) - {8}  # step 8 waits for step 6
    assert f"stamps/{study.line(line)}/{SIGNATURE}: " in found[6]
    assert f"and the signature is of {time.isoformat()}" in found[6]


def test_a_stamp_of_another_from_after_saves_nothing_and_holds(study: Stamped) -> None:
    study.revoke("rev")
    study.stamp("deviation", LATE)
    found = study.failing()
    assert found.keys() == {8, 9}
    assert "and the signature is of 2026-11-29T14:00:00+00:00" in found[8]
    assert COMPROMISED in found[9]


def test_a_late_stamp_is_saved_by_an_early_one_of_a_later_head_only(study: Stamped) -> None:
    study.revoke("ann")
    early, late = study.line("timestamped"), study.line("deviation")
    study.stamp(early, LATE)
    study.stamp(late, EARLY)
    study.told()
    shutil.rmtree(study.study / "stamps")
    study.stamp(early, EARLY)
    study.stamp(late, LATE)
    found = study.failing()
    assert found.keys() == {6, 9}
    assert f"stamps/{late}/" in found[6] and f"stamps/{early}/" not in found[6]


def test_two_late_stamps_do_not_save_each_other(study: Stamped) -> None:
    study.revoke("ann")
    for line in ("timestamped", "deviation"):
        study.stamp(line, LATE)
    assert study.failing()[6].count("stamps/") == 2


@pytest.mark.parametrize("reason", ["lost", "superseded"])
def test_a_stamp_saves_nothing_of_a_key_that_was_lost_or_replaced(study: Stamped, reason: str) -> None:
    """Such a key signed when its holder says, and that is not before."""
    study.stamp("audit", datetime(2026, 11, 29, 9, tzinfo=UTC))
    study.revoke("rev", reason, datetime(2026, 11, 29, 10, tzinfo=UTC))
    assert study.failing().keys() == {6, 9}


def test_seals_of_a_compromised_key_are_saved_by_the_stamp_of_a_head(new: Stamped) -> None:
    new.revoke("ann")
    assert new.failing().keys() == {4, 6, 9}
    new.stamp("amended")
    assert "lines 1 to 3" in new.told()


def test_a_stamp_holds_no_line_after_it(new: Stamped) -> None:
    """The first seal was stamped; the second one, and its head, whoever has the key may have made."""
    new.revoke("ann")
    new.stamp("deviation")
    found = new.failing()
    assert found.keys() == {4, 6, 9}
    assert "seal/manifest.json.sig: " in found[4] and "seal/lineage/" not in found[4]


def test_a_stamp_holds_no_signature_that_no_line_names(new: Stamped) -> None:
    """The key's thief signs the manifest anew, in another name; the entry has the digest of the old one."""
    new.revoke("ann")
    new.stamp("amended")
    new.told()
    path = new.study / "seal/manifest.json.sig"
    path.write_bytes(
        sign(new.keys / "author", (new.study / "seal/manifest.json").read_bytes(), "prereg-seal")
    )
    new.told()  # the signatures of this kind of key are always the same
    signers = new.root / "trust/allowed_signers"
    signers.write_text(signers.read_text() + f"ann@example.org {(new.keys / 'third.pub').read_text()}")
    revoke(new, "third", AT.isoformat(), "compromised")
    path.write_bytes(sign(new.keys / "third", (new.study / "seal/manifest.json").read_bytes(), "prereg-seal"))
    found = new.failing()
    assert COMPROMISED in found[4]
    assert "/body/signature_sha256" in found[6]


def test_a_broken_chain_attests_nothing(new: Stamped) -> None:
    """The stamped line is still there; the one before it, which it names, is another."""
    new.revoke("ann")
    new.stamp("amended")
    new.told()
    new.edit("ledger.jsonl", lambda data: data.replace(b'"early"', b'"other"', 1))
    found = new.failing()
    assert {4, 6} <= found.keys()
    assert found[4].count(COMPROMISED) == 2
    assert "stamps were not judged: the ledger's chain is broken" in look(new.study).steps[6].notes


def test_a_protocol_that_is_not_the_sealed_one_asks_for_no_stamp(new: Stamped) -> None:
    new.revoke("ann")
    new.stamp("amended")
    new.edit("protocol.json", lambda data: data + b"\n")
    found = new.failing()
    assert {3, 4} <= found.keys() and COMPROMISED in found[4]
    assert "stamps were not judged: protocol.json cannot be used" in look(new.study).steps[6].notes


def test_an_own_timestamp_counts_beside_the_stamp_of_a_head(study: Stamped) -> None:
    """The earliest of what the seal is older than decides."""
    study.stamp("timestamped", datetime(2026, 11, 29, 10, 0, 3, tzinfo=UTC))
    study.revoke("ann", at=datetime(2026, 11, 29, 10, 0, 3, 100_000, UTC))
    assert study.failing().keys() == {6, 9}
    shutil.rmtree(study.study / "stamps")
    assert study.failing().keys() == {4, 6, 9}


def test_history_keeps_refusing_heads_after_the_last_stamp(study: Stamped) -> None:
    """A head that its key's thief signs later, of a line that was stamped, is what was signed before."""
    study.revoke("ann")
    study.stamp("deviation")
    study.told()
    copy = (study.study / HEAD).read_bytes(), (study.study / SIGNATURE).read_bytes()
    (study.study / HEAD).write_bytes(study.head(1))
    (study.study / SIGNATURE).write_bytes(sign(study.keys / "author", study.head(1), "prereg-ledger"))
    commit(study)
    for name, data in zip((HEAD, SIGNATURE), copy, strict=True):
        (study.study / name).write_bytes(data)
    commit(study)
    study.told()
    shutil.rmtree(study.study / f"stamps/{study.line('deviation')}")
    run("git", "rm", "-rq", "--cached", "studies/tiny/stamps", cwd=study.root)
    commit(study)
    assert study.failing().keys() == {6, 9}
