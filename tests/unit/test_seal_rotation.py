"""Keys that come and go: rotation in one step, revocation for good, and what `prereg key` says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prereg.codec.schema import AuthoredFileInvalid
from prereg.errors import UsageError, VerificationFailed
from prereg.model.seal import Role
from prereg.seal import rotation
from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.revocation import Revocation, parse_revocations, revocations_text
from prereg.seal.rotation import read_repository, revoke_key, rotate_key, state_of
from prereg.seal.trust import Untrusted, add_signer, check_signer
from prereg.seal.verify import verify_study
from tests.unit import test_seal_verify_evidence as evidence
from tests.unit.seal_kit import fails
from tests.unit.study_fixture import copy_repository, fabricate_records, make_study, seal, signing_key
from tests.unit.test_cli import prereg

ADA, REX = "ada@example.org", "rex@example.org"
NOON = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[SigningKey]:
    folder = tmp_path_factory.mktemp("keys")
    return [generate_key(folder / name) for name in ("one", "two", "three")]


@pytest.fixture
def repository(tmp_path: Path, keys: list[SigningKey]) -> Path:
    (tmp_path / "trust").mkdir()
    (tmp_path / "trust" / "allowed_signers").write_text("# by hand\n")
    add_signer(tmp_path, ADA, keys[0].public_line, ["author"])
    return tmp_path


def counts(repository: Path, key: SigningKey, at: datetime, *, namespace: str = "prereg-seal") -> bool:
    roles: tuple[Role, ...] = ("author",)
    try:
        check_signer(
            read_repository(repository),
            principal=ADA,
            public_key=key.public_key,
            roles=roles,
            namespace=namespace,
            at=at,
            where="x",
        )
    except Untrusted:
        return False
    return True


class TestRotation:
    def test_one_key_ends_and_the_next_begins(self, repository: Path, keys: list[SigningKey]) -> None:
        done = rotate_key(repository, keys[0].fingerprint, keys[1].public_line, now=NOON)
        assert (done.principals, done.at) == ((ADA,), NOON.replace(microsecond=0))
        for at, old, new in (
            (NOON - SECOND, True, False),
            (NOON, True, True),
            (NOON + SECOND, False, True),
        ):
            assert (counts(repository, keys[0], at), counts(repository, keys[1], at)) == (old, new), at
        assert not counts(repository, keys[1], NOON, namespace="prereg-audit")
        text = (repository / "trust" / "allowed_signers").read_text()
        assert text.splitlines() == [
            "# by hand",
            f'{ADA} namespaces="prereg-ledger,prereg-seal",valid-before="20260301120000Z" '
            + keys[0].public_line,
            f'{ADA} namespaces="prereg-ledger,prereg-seal",valid-after="20260301120000Z" '
            + keys[1].public_line,
        ]

    def test_every_line_of_the_key_ends_and_comments_stay(
        self, tmp_path: Path, keys: list[SigningKey]
    ) -> None:
        (tmp_path / "trust").mkdir()
        file = tmp_path / "trust" / "allowed_signers"
        old = keys[0].public_line
        file.write_text(f"{ADA} {old} ada's laptop\n{REX},bob {old}\n{ADA} {keys[2].public_line}\n\n")
        (tmp_path / "trust" / "roles.json").write_text('{"schema":"prereg/roles/v1","roles":{}}')
        rotate_key(tmp_path, keys[0].fingerprint, keys[1].public_line, now=NOON)
        new = f'valid-after="20260301120000Z" {keys[1].public_line}'
        end = f'valid-before="20260301120000Z" {old}'
        assert file.read_text().splitlines() == [
            f"{ADA} {end} ada's laptop",
            f"{REX},bob {end}",
            f"{ADA} {keys[2].public_line}",
            f"{ADA} {new}",
            f"{REX},bob {new}",
        ]

    def test_what_cannot_be_rotated_is_refused_and_nothing_is_written(
        self, repository: Path, keys: list[SigningKey]
    ) -> None:
        file = repository / "trust" / "allowed_signers"
        before = file.read_bytes()
        for old, new, what in (
            (keys[1], keys[2], "no line has the key"),
            (keys[0], keys[0], "is known already"),
        ):
            with pytest.raises(UsageError, match=what):
                rotate_key(repository, old.fingerprint, new.public_line)
        add_signer(repository, REX, keys[2].public_line, ["reviewer"])
        with pytest.raises(UsageError, match="is known already"):
            rotate_key(repository, keys[0].fingerprint, keys[2].public_line)
        revoke_key(repository, keys[0].fingerprint, "lost", "n")
        with pytest.raises(UsageError, match="is revoked"):
            rotate_key(repository, keys[0].fingerprint, keys[1].public_line)
        assert file.read_bytes().startswith(before)

    def test_a_key_that_ended_or_just_began_is_refused(
        self, repository: Path, keys: list[SigningKey]
    ) -> None:
        rotate_key(repository, keys[0].fingerprint, keys[1].public_line, now=NOON)
        for old, at in ((keys[0], NOON + 2 * SECOND), (keys[1], NOON)):
            with pytest.raises(UsageError, match="has no line that is valid now"):
                rotate_key(repository, old.fingerprint, keys[2].public_line, now=at)
        rotate_key(repository, keys[1].fingerprint, keys[2].public_line, now=NOON + SECOND)

    def test_a_revoked_key_is_no_successor(self, repository: Path, keys: list[SigningKey]) -> None:
        add_signer(repository, ADA, keys[1].public_line, ["author"])
        revoke_key(repository, keys[1].fingerprint, "lost", "n")
        lines = (repository / "trust" / "allowed_signers").read_text().splitlines()
        (repository / "trust" / "allowed_signers").write_text("\n".join(lines[:-1]) + "\n")
        with pytest.raises(UsageError, match="is known already"):
            rotate_key(repository, keys[0].fingerprint, keys[1].public_line)


class TestRevocation:
    def test_from_its_time_on_no_signature_counts(self, repository: Path, keys: list[SigningKey]) -> None:
        made = revoke_key(repository, keys[0].fingerprint, "superseded", "A new laptop", at=NOON)
        assert counts(repository, keys[0], NOON - timedelta(microseconds=1))
        assert not counts(repository, keys[0], NOON)
        assert made.at == "2026-03-01T12:00:00.700000+00:00"
        value = json.loads((repository / "trust" / "revocations.json").read_text())
        assert value["revocations"] == [
            {"key": keys[0].fingerprint, "at": made.at, "reason": "superseded", "note": "A new laptop"}
        ]

    def test_it_is_for_good_but_a_lost_key_may_turn_out_worse(
        self, repository: Path, keys: list[SigningKey]
    ) -> None:
        revoke_key(repository, keys[0].fingerprint, "lost", "n", at=NOON)
        with pytest.raises(UsageError, match=r"was revoked at .* \(lost\)"):
            revoke_key(repository, keys[0].fingerprint, "superseded", "n")
        assert revoke_key(repository, keys[0].fingerprint, "compromised", "found").at.startswith("2026-03-01")
        assert not counts(repository, keys[0], NOON - timedelta(days=1))
        with pytest.raises(UsageError, match="compromised"):
            revoke_key(repository, keys[0].fingerprint, "compromised", "again")

    def test_a_time_to_come_and_an_unknown_key_are_refused(
        self, repository: Path, keys: list[SigningKey]
    ) -> None:
        with pytest.raises(UsageError, match="still to come"):
            revoke_key(repository, keys[0].fingerprint, "lost", "n", at=datetime.now(UTC) + timedelta(days=1))
        with pytest.raises(UsageError, match="no line has the key"):
            revoke_key(repository, keys[1].fingerprint, "lost", "n")
        assert not (repository / "trust" / "revocations.json").exists()


REVOCATION = {
    "key": "SHA256:" + "A" * 43,
    "at": "2026-03-01T12:00:00+00:00",
    "reason": "lost",
    "note": "",
}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"key": "SHA256:short"}, "does not match"),
        ({"at": "2026-03-01"}, "does not match"),
        ({"at": "2026-02-30T12:00:00+00:00"}, "no such time"),
        ({"reason": "whim"}, "is not one of"),
        ({"more": 1}, "unexpected"),
    ],
)
def test_a_file_of_revocations_is_of_its_schema(changes: dict[str, object], what: str) -> None:
    def text(*rows: dict[str, object]) -> bytes:
        return json.dumps({"schema": "prereg/revocations/v1", "revocations": rows}).encode()

    assert list(parse_revocations(text(dict(REVOCATION)), where="r")) == [REVOCATION["key"]]
    with pytest.raises((AuthoredFileInvalid, UsageError), match=what):
        parse_revocations(text({**REVOCATION, **changes}), where="r")
    with pytest.raises(UsageError, match="stands twice"):
        parse_revocations(text(dict(REVOCATION), dict(REVOCATION)), where="r")


def test_what_is_written_is_read_back() -> None:
    one = Revocation(key="SHA256:" + "B" * 43, at="2026-03-01T12:00:00+00:00", reason="lost", note="Ü")
    assert parse_revocations(revocations_text({one.key: one}), where="r") == {one.key: one}


def test_the_states_of_a_line(repository: Path, keys: list[SigningKey]) -> None:
    rotate_key(repository, keys[0].fingerprint, keys[1].public_line, now=NOON)
    trust = read_repository(repository)
    old, new = trust.signers
    for at, states in (
        (NOON - SECOND, ("valid", "not yet")),
        (NOON, ("valid", "valid")),
        (NOON + SECOND, ("expired", "valid")),
    ):
        assert (state_of(old, trust, now=at), state_of(new, trust, now=at)) == states
    revoke_key(repository, keys[1].fingerprint, "lost", "n", at=NOON)
    assert state_of(new, read_repository(repository), now=NOON) == "revoked"


def test_the_command_line(tmp_path: Path, keys: list[SigningKey]) -> None:
    (tmp_path / "repo").mkdir()
    here = ["--repository", str(tmp_path / "repo"), "--json"]
    one, two = tmp_path / "k1", tmp_path / "k2"
    role = ["--principal", ADA, "--role", "author"]
    done = prereg("key", "new", str(one), *role, "--valid-after", "2026-01-01T10:00", *here)
    assert done.returncode == 0, done.stderr
    old = json.loads(done.stdout)["fingerprint"]
    (tmp_path / "three.pub").write_text(keys[2].public_line + " a comment\n")
    until = ["--valid-after", "20200101", "--valid-before", "2021-01-01"]
    done = prereg("key", "add", str(tmp_path / "three.pub"), *role, *until, *here)
    assert done.returncode == 0, done.stderr
    done = prereg("key", "rotate", str(one) + ".pub", "--to", str(two), *here)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["old"] == old and two.exists()
    done = prereg("key", "revoke", old, "--reason", "superseded", "--note", "n", *here)
    assert done.returncode == 0, done.stderr
    done = prereg("key", "list", *here)
    rows = {r["fingerprint"]: r for r in json.loads(done.stdout)["signers"]}
    assert [r["state"] for r in rows.values()] == ["revoked", "expired", "valid"]
    assert rows[old]["valid_after"] == "2026-01-01T10:00:00+00:00"
    assert rows[old]["revoked"]["reason"] == "superseded"
    assert "superseded" in prereg("key", "list", *here[:2]).stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["rotate", "SHA256:x", "--to", "{new}"], "no line has the key SHA256:x"),
        (["rotate", "{old}", "--to", "{old}"], "is known already"),
        (["revoke", "{old}", "--reason", "whim", "--note", "n"], "there is no reason 'whim'"),
        (["revoke", "{old}", "--reason", "lost", "--note", "n", "--at", "noon"], "is not understood"),
        (["add", "{old}", "--principal", "a", "--role", "author", "--valid-before", "2026"], "2026"),
    ],
)
def test_a_command_line_that_is_none(
    tmp_path: Path, repository: Path, keys: list[SigningKey], arguments: list[str], what: str
) -> None:
    (tmp_path / "old.pub").write_text(keys[0].public_line)
    named = {"old": str(tmp_path / "old.pub"), "new": str(tmp_path / "new")}
    done = prereg("key", *(a.format(**named) for a in arguments), "--repository", str(repository))
    assert done.returncode == 2 and what in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists() and not (tmp_path / "new.pub").exists()


def test_a_verified_study_heeds_rotation_and_revocation(tmp_path: Path) -> None:
    """Heads are judged at their own time: what the old key signed stays good after its rotation."""
    paths = make_study(tmp_path)
    seal(paths)
    fabricate_records(paths)
    col = signing_key(paths, "col")
    ended = copy_repository(paths, tmp_path / "ended")
    rotate_key(
        ended.repository, col.fingerprint, generate_key(tmp_path / "next").public_line, now=datetime.now(UTC)
    )
    verify_study(ended)
    gone = copy_repository(paths, tmp_path / "gone")
    revoke_key(gone.repository, col.fingerprint, "lost", "n")
    verify_study(gone)
    (gone.repository / "trust" / rotation.REVOCATIONS).unlink()
    revoke_key(gone.repository, col.fingerprint, "lost", "n", at=datetime(2026, 1, 1, tzinfo=UTC))
    assert isinstance(fails(gone, 6, r"was revoked at .* \(lost\)"), VerificationFailed)
    broken = copy_repository(paths, tmp_path / "broken")
    revoke_key(broken.repository, col.fingerprint, "compromised", "n")
    fails(broken, 6, "was revoked as compromised")


def test_a_report_is_judged_at_its_own_time(tmp_path: Path) -> None:
    """It says that it was made after the revocation of its signer's key; the head is another's."""
    paths = make_study(tmp_path)
    seal(paths)
    fabricate_records(paths)
    kit = evidence.TestDecisionsAndAudit()
    kit.decide(paths)
    kit.audit(paths, audited_at="2099-01-01T00:00:00+00:00")
    kit.decide(paths)  # the head is the author's then
    verify_study(paths)
    revoke_key(paths.repository, signing_key(paths, "rex").fingerprint, "superseded", "n")
    assert fails(paths, 8, "was revoked at").where == "audit/report.json.sig"
