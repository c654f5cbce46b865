"""Stamps of heads: how they are made, what of them holds, and what they save when a key is stolen."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prereg.audit.run import run_auditor
from prereg.errors import EvidenceIncomplete, PreregError, UsageError, VerificationFailed, WrongState
from prereg.seal import head_stamping
from prereg.seal.amend import amend_study
from prereg.seal.finish import sign_head_and_commit
from prereg.seal.head_stamping import StampedHead, stamp_head
from prereg.seal.head_stamps import FILES
from prereg.seal.rotation import revoke_key
from prereg.seal.standing import standing
from prereg.seal.tell import deviate_study
from prereg.seal.timestamp import BadTimestamp
from prereg.seal.verify import verify_report, verify_study
from prereg.store.layout import StudyPaths
from prereg.store.ledger import append, parse_time
from tests.unit.seal_kit import fails
from tests.unit.signing_fixture import asked_study, cosign
from tests.unit.study_fixture import ENVIRONMENTS, copy_repository, git, make_study, seal, signing_key
from tests.unit.test_seal_stamping import stamp
from tests.unit.timestamp_fixture import NOW, Authority, serve

EARLIER, BETWEEN, LATER = (NOW + timedelta(hours=h) for h in (-3, -2, -1))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(folder=tmp_path_factory.mktemp("tsa"))


@pytest.fixture(scope="module")
def url(authority: Authority) -> Iterator[str]:
    with serve(authority.stamp) as address:
        yield address


@pytest.fixture(scope="module")
def sealed_once(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> StudyPaths:
    paths = asked_study(
        tmp_path_factory.mktemp("sealed"), signers=(2, "ada", "bob"), roots=authority.roots, edition=3
    )
    seal(paths)
    return paths


@pytest.fixture
def sealed(sealed_once: StudyPaths, tmp_path: Path) -> StudyPaths:
    return copy_repository(sealed_once, tmp_path / "copy")


def at(authority: Authority, paths: StudyPaths, time: datetime, **faults: object) -> StampedHead:
    """The present head is stamped, at a time that the authority says."""
    word = f"{time:%Y%m%d%H%M%S}Z"
    with serve(lambda request: authority.token(request, time=word, **faults)) as address:
        return stamp_head(paths, address, timeout=20)


def tell(paths: StudyPaths, who: str = "ada") -> None:
    """One more entry, and its signed head."""
    deviate_study(paths, "A test.", key=signing_key(paths, who), principal=f"{who}@example.org")


def stolen(paths: StudyPaths, who: str, when: datetime) -> None:
    revoke_key(paths.repository, signing_key(paths, who).fingerprint, "compromised", "a thief", at=when)


def accepted(paths: StudyPaths) -> None:
    """Both sides are content, as far as the study has come."""
    verify_study(paths)
    steps = run_auditor(paths).value["steps"]
    assert [s["detail"] for s in steps if s["status"] == "failed"] == []


def refused(paths: StudyPaths, step: int, what: str) -> PreregError:
    """Both sides refuse it: prereg at that step, the auditor somewhere."""
    assert run_auditor(paths).result == "FAILED"
    return fails(paths, step, what)


class TestMaking:
    def test_a_stamp_is_kept_beside_its_head_and_committed(self, sealed: StudyPaths, url: str) -> None:
        ledger = sealed.ledger.read_bytes()
        done = stamp_head(sealed, url)
        assert done.seq == 1 and abs(done.time - datetime.now(UTC)) < timedelta(hours=1)
        assert sealed.ledger.read_bytes() == ledger  # it needs no entry
        folder = sealed.head_stamp(1)
        assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
        assert (folder / "ledger.head.json.sig").read_bytes() == sealed.head_signature.read_bytes()
        assert git(sealed.repository, "status", "--porcelain") == ""
        message = git(sealed.repository, "show", "-s", "--format=%B", "HEAD")
        verified = verify_study(sealed)
        assert f"Prereg-Study: {verified.manifest.study}\nPrereg-Seal: {verified.seal}\n" in message
        assert f"Prereg-Ledger-Head: {verified.head}" in message
        detail = verify_report(sealed)[5].detail
        assert detail == f"1 entry, sealed; 1 stamp of heads, the last of entry 1, {done.time.isoformat()}"

    def test_a_head_that_has_one_keeps_it_and_nobody_is_asked(
        self, sealed: StudyPaths, authority: Authority, url: str
    ) -> None:
        first = stamp_head(sealed, url)
        asked, commit = len(authority.requests), git(sealed.repository, "rev-parse", "HEAD")
        again = stamp_head(sealed, url)
        assert (again.seq, again.time, again.commit) == (1, first.time, None)
        assert len(authority.requests) == asked
        assert git(sealed.repository, "rev-parse", "HEAD") == commit
        tell(sealed)
        assert stamp_head(sealed, url).seq == 2
        assert {p.name for p in sealed.stamps.iterdir()} == {"1", "2"}
        verify_study(sealed)

    def test_one_that_was_cut_off_before_its_commit_is_committed(
        self, sealed: StudyPaths, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(head_stamping, "_commit", lambda *_: None)
            time = stamp_head(sealed, url).time
        done = stamp_head(sealed, "http://127.0.0.1:9/")
        assert done.time == time and done.commit is not None
        assert git(sealed.repository, "status", "--porcelain") == ""

    @pytest.mark.parametrize("left", range(1, 4))
    def test_one_that_was_cut_off_within_is_made_anew(self, left: int, sealed: StudyPaths, url: str) -> None:
        stamp_head(sealed, url)
        git(sealed.repository, "reset", "-q", "--soft", "HEAD~1")
        git(sealed.repository, "reset", "-q")
        for name in FILES[left:]:
            (sealed.head_stamp(1) / name).unlink()
        (sealed.head_stamp(1) / f".{FILES[left]}.77.partial").write_bytes(b"half")
        fails(sealed, 1, "unfinished write")
        (sealed.head_stamp(1) / f".{FILES[left]}.77.partial").unlink()
        fails(sealed, 6, f"has no {FILES[left]}".replace(".", r"\."))
        assert stamp_head(sealed, url).commit is not None
        verify_study(sealed)

    def test_what_is_not_verified_is_not_kept(self, sealed: StudyPaths, authority: Authority) -> None:
        for faults in ({"status": 2}, {"nonce": 5}, {"imprint": b"\0" * 32}):
            with pytest.raises(BadTimestamp, match=r"^stamps/1/timestamp\.tsr: ") as caught:
                at(authority, sealed, NOW, **faults)
            assert f"prereg timestamp {sealed.root} --head --url" in str(caught.value.next_step)
        assert not sealed.stamps.exists()
        with pytest.raises(EvidenceIncomplete, match="cannot be reached"):
            stamp_head(sealed, "http://127.0.0.1:9/")
        with pytest.raises(UsageError, match="not http"):
            stamp_head(sealed, "ftp://x")
        assert git(sealed.repository, "status", "--porcelain") == ""

    def test_a_ledger_that_grows_while_the_authority_thinks_is_not_stamped(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        def slow(request: bytes) -> bytes:
            tell(sealed)
            return authority.stamp(request)

        with serve(slow) as address, pytest.raises(WrongState, match="meanwhile"):
            stamp_head(sealed, address)
        assert not sealed.stamps.exists()

    def test_a_head_that_is_not_signed_or_committed_is_refused(self, sealed: StudyPaths, url: str) -> None:
        body = {"seal": verify_study(sealed).seal, "about": [], "text": "A test."}
        append(sealed, "deviation", body, "ada@example.org")
        with pytest.raises(VerificationFailed, match="the later ones are not signed"):
            stamp_head(sealed, url)
        key = signing_key(sealed)
        sign_head_and_commit(sealed, key=key, principal="ada@example.org", message="Told")
        git(sealed.repository, "reset", "-q", "--soft", "HEAD~1")
        with pytest.raises(WrongState, match="is not committed yet"):
            stamp_head(sealed, url)
        assert not sealed.stamps.exists()

    def test_only_a_study_of_edition_3_that_asks_for_time_stamps_has_them(
        self, tmp_path: Path, authority: Authority, url: str
    ) -> None:
        paths = make_study(tmp_path / "draft")
        with pytest.raises(WrongState, match="is not sealed"):
            stamp_head(paths, url)
        for name, edition, roots, what in (
            ("second", 2, authority.roots, "is of an earlier edition than 3"),
            ("third", 3, None, "asks for no time stamp"),
        ):
            paths = asked_study(tmp_path / name, roots=roots, edition=edition)
            seal(paths)
            with pytest.raises(WrongState, match=what):
                stamp_head(paths, url)
            assert standing(paths) is not None and standing(paths).heads is None  # type: ignore[union-attr]


class TestSaving:
    """Ada sealed; bob cosigned. Keys turn out to be stolen."""

    def test_the_seal_is_saved_by_anybodys_stamp_and_a_head_by_its_keys_own(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        cosign(sealed, "bob")
        at(authority, sealed, EARLIER)  # of bob's head, which is later than the seal's entry
        stolen(sealed, "ada", BETWEEN)
        fault = refused(sealed, 9, "compromised")  # the seal counts; ada's head does not
        assert fault.where == "ledger.head.json.sig"
        (sealed.repository / "trust" / "revocations.json").unlink()
        shutil.rmtree(sealed.head_stamp(2))
        git(sealed.repository, "commit", "-q", "-a", "-m", "Dropped")
        stolen(sealed, "ada", BETWEEN)
        refused(sealed, 4, "compromised")

    def test_a_stamp_of_a_later_head_of_the_same_key_saves_the_earlier_ones(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        cosign(sealed, "bob")
        tell(sealed)
        at(authority, sealed, EARLIER)
        stolen(sealed, "ada", BETWEEN)
        accepted(sealed)
        tell_as_a_thief(sealed)
        refused(sealed, 6, "compromised")

    def test_a_cosignature_is_saved_by_a_stamp_that_attests_its_entry(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        at(authority, sealed, EARLIER)  # of ada's head, before the cosignature
        cosign(sealed, "bob")
        stolen(sealed, "bob", BETWEEN)
        refused(sealed, 4, "compromised")
        (sealed.repository / "trust" / "revocations.json").unlink()
        at(authority, sealed, EARLIER)
        stolen(sealed, "bob", BETWEEN)
        accepted(sealed)

    @pytest.mark.parametrize(("when", "saved"), [(EARLIER, True), (BETWEEN, False), (LATER, False)])
    def test_only_what_was_stamped_before_the_theft_counts(
        self, when: datetime, saved: bool, sealed: StudyPaths, authority: Authority
    ) -> None:
        at(authority, sealed, when)
        stolen(sealed, "ada", BETWEEN)
        if saved:
            accepted(sealed)
        else:
            refused(sealed, 4, "compromised")

    def test_a_late_stamp_of_an_early_head_is_no_fault_where_an_early_one_reaches_it(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        at(authority, sealed, LATER)
        tell(sealed)
        at(authority, sealed, EARLIER)
        stolen(sealed, "ada", BETWEEN)
        accepted(sealed)

    def test_a_key_that_was_lost_is_saved_by_no_stamp(self, sealed: StudyPaths, authority: Authority) -> None:
        at(authority, sealed, EARLIER)
        key, long_ago = signing_key(sealed).fingerprint, parse_time("2020-01-01T00:00:00+00:00")
        revoke_key(sealed.repository, key, "lost", "a test", at=long_ago)
        refused(sealed, 4, "was revoked at")

    def test_the_seals_own_stamp_and_a_heads_stamp_do_the_same_for_the_seal(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        cosign(sealed, "bob")
        with serve(lambda request: authority.token(request, time=f"{LATER:%Y%m%d%H%M%S}Z")) as address:
            stamp(sealed, address)  # the seal's own: too late
        at(authority, sealed, EARLIER)  # ada's own head
        stolen(sealed, "ada", BETWEEN)
        accepted(sealed)


def tell_as_a_thief(paths: StudyPaths) -> None:
    """Whoever holds ada's key adds an entry, dated as they like."""
    body = {
        "seal": json.loads(paths.ledger.read_text().split("\n")[0])["body"]["seal"],
        "about": [],
        "text": "x",
    }
    append(paths, "deviation", body, "ada@example.org")
    key = signing_key(paths)
    sign_head_and_commit(paths, key=key, principal="ada@example.org", message="Told")


class TestHolding:
    """A stamp that does not hold fails in step 6, whether it saves anything or not."""

    def test_a_stamp_of_another_study_is_none(self, tmp_path: Path, authority: Authority) -> None:
        paths = asked_study(tmp_path, roots=authority.roots, edition=3)
        seal(paths)
        other = asked_study(tmp_path, roots=authority.roots, edition=3, study="twin")
        seal(other)
        at(authority, other, NOW)
        shutil.copytree(other.stamps, paths.stamps)
        fault = refused(paths, 6, "belongs to study 'twin', not 'coin'")
        assert fault.where == "stamps/1/ledger.head.json#/study"

    def test_one_that_does_not_hold_saves_nothing_and_the_others_do(
        self, sealed: StudyPaths, authority: Authority
    ) -> None:
        at(authority, sealed, EARLIER)
        tell(sealed)
        at(authority, sealed, EARLIER)
        stolen(sealed, "ada", BETWEEN)
        accepted(sealed)
        (sealed.head_stamp(2) / "timestamp.tsr").write_bytes(
            (sealed.head_stamp(1) / "timestamp.tsr").read_bytes()
        )
        fault = fails(
            sealed, 6, "is for other bytes than the request"
        )  # and not step 4: the first still saves
        assert fault.where == "stamps/2/timestamp.tsr"

    def test_a_file_beside_the_four_and_an_odd_folder_are_named(self, sealed: StudyPaths, url: str) -> None:
        stamp_head(sealed, url)
        (sealed.head_stamp(1) / "note").write_text("")
        refused(sealed, 1, "is at no known place")
        (sealed.head_stamp(1) / "note").unlink()
        for name in ("0", "01", "x", "1/more"):
            (sealed.stamps / name).mkdir()
            refused(sealed, 1, "is no known folder")
            (sealed.stamps / name).rmdir()
        (sealed.stamps / "2").mkdir()
        refused(sealed, 6, r"has no ledger\.head\.json")

    def test_an_empty_folder_of_stamps_says_nothing_but_where_none_can_be(
        self, sealed: StudyPaths, tmp_path: Path, authority: Authority
    ) -> None:
        sealed.stamps.mkdir()
        verify_study(sealed)
        other = make_study(tmp_path / "other")
        seal(other)
        other.stamps.mkdir()
        refused(other, 6, "the protocol asks for none")
        second = asked_study(tmp_path / "second", roots=authority.roots, edition=2)
        seal(second)
        second.stamps.mkdir()
        refused(second, 6, "an earlier edition has no stamps of heads")


def test_an_amendment_keeps_the_stamps_and_the_roots_that_they_need(
    tmp_path: Path, authority: Authority, url: str
) -> None:
    paths = asked_study(tmp_path, roots=authority.roots, edition=3)
    seal(paths)
    stamp_head(paths, url)

    def amend() -> None:
        key, who = signing_key(paths), "ada@example.org"
        amend_study(paths, reason="A test.", key=key, principal=who, environments=ENVIRONMENTS)

    stranger = Authority(folder=tmp_path / "stranger")
    (paths.root / "roots.pem").write_bytes(stranger.roots)
    with pytest.raises(WrongState, match="a stamp of a head would not hold any more: no chain of cert"):
        amend()
    (paths.root / "roots.pem").write_bytes(stranger.roots + authority.roots)
    amend()
    accepted(paths)
    assert stamp_head(paths, url).seq == 2
    with serve(stranger.stamp) as other:
        deviate_study(paths, "A test.", key=signing_key(paths), principal="ada@example.org")
        assert stamp_head(paths, other).seq == 3
    accepted(paths)
    value = json.loads(paths.protocol.read_text())
    del value["timestamp"]
    paths.protocol.write_text(json.dumps(value))
    with pytest.raises(WrongState, match="the protocol asks for none"):
        amend()
