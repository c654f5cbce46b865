"""allowed_signers and roles: OpenSSH's rules, and a reviewer is never an author."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prereg.codec.canonical import MalformedJson
from prereg.codec.schema import AuthoredFileInvalid
from prereg.errors import EvidenceIncomplete, UsageError
from prereg.model.seal import Role
from prereg.seal.allowed_signers import parse_allowed_signers
from prereg.seal.keys import SigningKey, generate_key
from prereg.seal.trust import (
    Trust,
    Untrusted,
    add_signer,
    check_own_signer,
    check_signer,
    load_trust,
    parse_roles,
    read_trust,
)
from tests.unit.signing_fixture import asked_study
from tests.unit.study_fixture import git, make_study, seal
from tests.unit.test_cli import prereg

ADA, REX = "ada@example.org", "rex@example.org"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[SigningKey]:
    folder = tmp_path_factory.mktemp("keys")
    return [generate_key(folder / name) for name in ("one", "two")]


def trust_of(text: str, roles: dict[str, tuple[Role, ...]] | None = None) -> Trust:
    return Trust(
        signers=parse_allowed_signers(text.encode(), where="as"),
        roles=roles or {ADA: ("author",)},
        where="as",
    )


def check(trust: Trust, key: SigningKey, *, namespace: str = "prereg-seal", at: datetime = NOON) -> None:
    check_signer(
        trust,
        principal=ADA,
        public_key=key.public_key,
        roles=("author",),
        namespace=namespace,
        at=at,
        where="seal/manifest.json.sig",
    )


def test_comments_blanks_and_several_principals(keys: list[SigningKey]) -> None:
    text = f"# people\n\n  {REX},{ADA} {keys[0].public_line} ada's laptop\n"
    (signer,) = parse_allowed_signers(text.encode(), where="as")
    assert signer.principals == (REX, ADA)
    assert signer.public_key == keys[0].public_key
    assert (signer.line, signer.namespaces, signer.valid_after, signer.valid_before) == (3, None, None, None)
    check(trust_of(text), keys[0])


def test_another_key_or_name_is_not_trusted(keys: list[SigningKey]) -> None:
    with pytest.raises(Untrusted, match=r"is not ada@example\.org's") as caught:
        check(trust_of(f"{ADA} {keys[0].public_line}\n"), keys[1])
    assert caught.value.where == "seal/manifest.json.sig"
    assert caught.value.exit_code == 1
    with pytest.raises(Untrusted, match=r"is not ada@example\.org's"):
        check(trust_of(f"{REX} {keys[0].public_line}\n"), keys[0])


def test_a_role_is_needed(keys: list[SigningKey]) -> None:
    text = f"{ADA} {keys[0].public_line}\n"
    with pytest.raises(Untrusted, match="has no role author"):
        check(trust_of(text, {ADA: ("collector",)}), keys[0])
    with pytest.raises(Untrusted, match="has no role author"):
        check(trust_of(text, {REX: ("author",)}), keys[0])


OPTIONS = [
    ('namespaces="prereg-seal"', None),
    ('namespaces="prereg-ledger"', "may not sign in namespace"),
    ('namespaces="other,prereg-*"', None),
    ('namespaces="!prereg-seal,prereg-*"', "may not sign in namespace"),
    ('namespaces="prereg-[s]eal"', "may not sign in namespace"),
    ('valid-after="20260301120000Z"', None),
    ('valid-after="20260301120001Z"', "was not valid before"),
    ('valid-before="20260301120000Z"', None),
    ('valid-before="20260301115959Z"', "is not valid after"),
    ('valid-after="20260301",valid-before="202603011201"', None),
    ('valid-after="20260302"', "was not valid before"),
    ('VALID-AFTER="20260302"', "was not valid before"),
    ('namespaces="prereg-seal",valid-before="20260228Z"', "is not valid after"),
]


@pytest.mark.parametrize(("options", "fault"), OPTIONS)
def test_options_are_honoured_at_the_time_of_signing(
    keys: list[SigningKey], options: str, fault: str | None
) -> None:
    trust = trust_of(f"{ADA} {options} {keys[0].public_line}\n")
    if fault is None:
        check(trust, keys[0])
    else:
        with pytest.raises(Untrusted, match=fault):
            check(trust, keys[0])


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
@pytest.mark.parametrize(("options", "fault"), [row for row in OPTIONS if "Z" in row[0] or "name" in row[0]])
def test_openssh_reads_the_options_the_same_way(
    keys: list[SigningKey], tmp_path: Path, options: str, fault: str | None
) -> None:
    (tmp_path / "as").write_text(f"{ADA} {options} {keys[0].public_line}\n")
    (tmp_path / "sig").write_bytes(keys[0].sign(b"m", namespace="prereg-seal"))
    done = subprocess.run(
        [
            *("ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "as"), "-I", ADA, "-n", "prereg-seal"),
            *("-s", str(tmp_path / "sig"), "-O", "verify-time=20260301120000Z"),
        ],
        input=b"m",
        capture_output=True,
        check=False,
    )
    assert (done.returncode == 0) == (fault is None), done.stdout + done.stderr


def test_the_last_second_counts_whole(keys: list[SigningKey]) -> None:
    options = 'valid-after="20260301115959",valid-before="202603011200"'
    trust = trust_of(f"{ADA} {options} {keys[0].public_line}\n")
    check(trust, keys[0], at=NOON.replace(microsecond=999_999))
    with pytest.raises(Untrusted, match="is not valid after"):
        check(trust, keys[0], at=NOON.replace(second=1))


def test_any_name_without_a_pattern_may_stand_there(keys: list[SigningKey]) -> None:
    text = f'"zoë/laptop,[x]",{ADA} {keys[0].public_line}\n'.replace('"', "")
    (signer,) = parse_allowed_signers(text.encode(), where="as")
    assert signer.principals == ("zoë/laptop", "[x]", ADA)
    (signer,) = parse_allowed_signers(f'{ADA}\t{keys[0].public_line} 5" of "comment\n'.encode(), where="as")
    assert signer.principals == (ADA,)


def test_one_line_that_is_not_understood_refuses_the_whole_file(keys: list[SigningKey]) -> None:
    text = f"{ADA} {keys[0].public_line}\nwhat is this\n"
    with pytest.raises(UsageError, match="is not `principals") as caught:
        trust_of(text)
    assert caught.value.where == "as:2"


def test_one_of_two_lines_is_enough(keys: list[SigningKey]) -> None:
    line = keys[0].public_line
    trust = trust_of(f'{ADA} valid-before="20250101Z" {line}\n{ADA} valid-after="20260101Z" {line}\n')
    check(trust, keys[0])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{a} cert-authority {k}", "certificate authorities"),
        ('{a} cert-authority,namespaces="x" {k}', "certificate authorities"),
        ("* {k}", "not a plain name"),
        ("*@example.org {k}", "not a plain name"),
        ("!{a} {k}", "not a plain name"),
        ("{a}, {k}", "not a plain name"),
        ("{a} no-touch-required {k}", "is not known"),
        ('{a} namespaces="a",namespaces="b" {k}', "stands twice"),
        ('{a} namespaces="a {k}', "not closed|not `principals"),
        ('{a} valid-after="2026" {k}', "is not YYYYMMDD"),
        ('{a} valid-after="20261301" {k}', "does not exist"),
        ("{a} valid-after=20260302 {k}", "is not an option"),
        ('{a} valid-after="20260302",, {k}', "is not an option"),
        ('{a} namespaces="a",,valid-after="20260302" {k}', "is not an option"),
        ("{a} namespaces {k}", "is not an option"),
        ('{a} valid-after="20260302Z",valid-before="20260302" {k}', "not later than"),
        ('{a} valid-after="20260302",valid-before="20260301" {k}', "not later than"),
        ('{a} VALID-AFTER="20260302",valid-after="20260301" {k}', "stands twice"),
        ('{a} valid-after="٢٠٢٦٠٣٠٢" {k}', "is not YYYYMMDD"),
        ("{a},,b {k}", "not a plain name"),
        ("b,a?c {k}", "not a plain name"),
        ("b,a!c {k}", "not a plain name"),
        ('"" {k}', "is not `principals"),
        ('"{a}" {k}', "is not `principals"),
        ("ada\u00a0x {k}", "not a plain name"),
        ("{a}\u2003 {k}", "not a plain name"),
        ("{a}\u00a0{k}", "is not `principals"),
        ("\u2028{a} {k}", "not a plain name"),
        ("{a} {k}\u00a0x", "not an OpenSSH public key"),
        ("{a} {k}\r", "control character"),
        ("{a}\x85 {k}", "control character"),
        ("# a\x1b[2Kcomment", "control character"),
        ("{a} {k}A", "not an OpenSSH public key"),
        ("{a} {k}AAAA", "not an OpenSSH public key"),
        ("{a} {k}====", "not an OpenSSH public key"),
        ('"{a}"b {k}', "is not `principals"),
        ("{a}\x00 {k}", "control character"),
        ("{a} options\x0b {k}", "control character"),
        ("{a}", "is not `principals"),
        ('{a} namespaces="" {k}', "namespaces names none"),
        ("{a} ssh-ed25519", "is not `principals"),
        ("{a} ssh-ed25519 AAAA", "not an OpenSSH public key"),
        ("{a} ssh-ed25519 ****", "not an OpenSSH public key"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(
    keys: list[SigningKey], line: str, what: str
) -> None:
    text = "# first\n" + line.format(a=ADA, k=keys[0].public_line) + "\n"
    with pytest.raises(UsageError, match=what) as caught:
        parse_allowed_signers(text.encode(), where="trust/allowed_signers")
    assert caught.value.where == "trust/allowed_signers:2"


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UsageError, match="UTF-8"):
        parse_allowed_signers(b"\xff\xfe", where="as")


@pytest.mark.parametrize(
    "text",
    [
        '{"schema":"prereg/roles/v1","roles":{"ada":["boss"]}}',
        '{"schema":"prereg/roles/v1","roles":{"ada":[]}}',
        '{"schema":"prereg/roles/v1"}',
        '{"schema":"prereg/roles/v1","roles":{"a b":["author"]}}',
        '{"schema":"prereg/roles/v1","roles":{"ada":["author"]},"x":1}',
    ],
)
def test_roles_are_of_their_schema(text: str) -> None:
    with pytest.raises(AuthoredFileInvalid):
        parse_roles(text.encode(), where="roles.json")


def test_a_principal_does_not_stand_twice_in_roles() -> None:
    text = b'{"schema":"prereg/roles/v1","roles":{"ada":["author"],"ada":["reviewer"]}}'
    with pytest.raises(MalformedJson, match="stands twice"):
        parse_roles(text, where="roles.json")


class TestAddSigner:
    def test_it_appends_and_can_be_repeated(self, keys: list[SigningKey], tmp_path: Path) -> None:
        (tmp_path / "trust").mkdir()
        old = f"# by hand\n{REX} {keys[1].public_line} no newline"
        (tmp_path / "trust" / "allowed_signers").write_text(old)
        for _ in range(2):
            add_signer(tmp_path, ADA, keys[0].public_line + " a comment", ["author"])
        text = (tmp_path / "trust" / "allowed_signers").read_text()
        assert text.splitlines() == [
            *old.splitlines(),
            f'{ADA} namespaces="prereg-ledger,prereg-seal" {keys[0].public_line}',
        ]
        trust = read_trust(tmp_path / "trust" / "allowed_signers", tmp_path / "trust" / "roles.json")
        check(trust, keys[0])
        with pytest.raises(Untrusted, match="may not sign in namespace"):
            check(trust, keys[0], namespace="prereg-audit")

    def test_roles_add_up(self, keys: list[SigningKey], tmp_path: Path) -> None:
        add_signer(tmp_path, ADA, keys[0].public_line, ["collector"])
        add_signer(tmp_path, ADA, keys[0].public_line, ["author"])
        roles = json.loads((tmp_path / "trust" / "roles.json").read_text())["roles"]
        assert roles == {ADA: ["author", "collector"]}

    @pytest.mark.parametrize("first", ["author", "reviewer"])
    def test_author_and_reviewer_share_no_name(
        self, keys: list[SigningKey], tmp_path: Path, first: Role
    ) -> None:
        second: Role = "reviewer" if first == "author" else "author"
        add_signer(tmp_path, ADA, keys[0].public_line, [first])
        before = {p.name: p.read_bytes() for p in (tmp_path / "trust").iterdir()}
        with pytest.raises(Untrusted, match="both author and reviewer"):
            add_signer(tmp_path, ADA, keys[1].public_line, [second])
        with pytest.raises(Untrusted, match="both an author's and a reviewer's"):
            add_signer(tmp_path, REX, keys[0].public_line, [second])
        assert {p.name: p.read_bytes() for p in (tmp_path / "trust").iterdir()} == before
        add_signer(tmp_path, REX, keys[1].public_line, [second])

    def test_bad_names_keys_and_roles_are_refused(self, keys: list[SigningKey], tmp_path: Path) -> None:
        line = keys[0].public_line
        for principal, key, roles in (
            ("a b", line, ["author"]),
            ("*", line, ["author"]),
            (ADA, "ssh-ed25519 AAAA", ["author"]),
            (ADA, line, ["boss"]),
            (ADA, line, []),
        ):
            with pytest.raises(UsageError):
                add_signer(tmp_path, principal, key, roles)  # type: ignore[arg-type]
        assert not (tmp_path / "trust").exists()


def test_a_key_shared_by_hand_is_refused_on_reading(keys: list[SigningKey], tmp_path: Path) -> None:
    line = keys[0].public_line
    (tmp_path / "as").write_text(f"{ADA} {line}\n{REX} {line} other comment\n")
    (tmp_path / "roles").write_text(
        json.dumps({"schema": "prereg/roles/v1", "roles": {ADA: ["author"], REX: ["reviewer"]}})
    )
    with pytest.raises(Untrusted, match="both an author's and a reviewer's"):
        read_trust(tmp_path / "as", tmp_path / "roles")


def test_missing_trust_is_not_trust(tmp_path: Path) -> None:
    with pytest.raises(EvidenceIncomplete, match="missing") as caught:
        read_trust(tmp_path / "as", tmp_path / "roles")
    assert "prereg key new" in str(caught.value.next_step) and "prereg key add" in str(caught.value.next_step)


def test_only_trust_that_head_has_is_fetched_from_there(tmp_path: Path) -> None:
    paths = make_study(tmp_path)
    shutil.rmtree(paths.repository / "trust")
    with pytest.raises(EvidenceIncomplete) as caught:
        load_trust(paths)
    assert caught.value.next_step == f"git checkout HEAD -- {paths.allowed_signers}"
    git(paths.repository, "rm", "-rq", "--cached", "trust")
    git(paths.repository, "commit", "-q", "-m", "No trust")
    with pytest.raises(EvidenceIncomplete) as caught:
        load_trust(paths)
    assert str(caught.value.next_step).startswith("prereg key new FILE --principal NAME")


@pytest.mark.parametrize(
    ("held", "roles", "step"),
    [
        (("author",), ("reviewer",), "--principal NAME --role reviewer, with the key of another person"),
        (("reviewer",), ("author",), "--principal NAME --role author, with the key of another person"),
        (("reviewer",), ("collector", "author"), f"--principal {ADA} --role collector"),
        ((), ("author",), f"--principal {ADA} --role author"),
    ],
)
def test_a_signer_without_the_role_is_told_how_to_get_it(
    keys: list[SigningKey], held: tuple[Role, ...], roles: tuple[Role, ...], step: str
) -> None:
    with pytest.raises(Untrusted, match="has no role") as caught:
        check_own(trust_of(f"{ADA} {keys[0].public_line}\n", {ADA: held}), keys[0], roles)
    assert caught.value.next_step == f"prereg key add KEY.pub {step}"
    assert caught.value.exit_code == 2


def test_a_signer_s_own_key_that_is_another_s_or_over(keys: list[SigningKey]) -> None:
    text = f'{ADA} valid-before="20260228Z" {keys[0].public_line}\n'
    for key, step in ((keys[0], "key list"), (keys[1], f"key add KEY.pub --principal {ADA} --role author")):
        with pytest.raises(Untrusted) as caught:
            check_own(trust_of(text), key, ("author",))
        assert (caught.value.next_step, caught.value.exit_code) == (f"prereg {step}", 2)


def check_own(trust: Trust, key: SigningKey, roles: tuple[Role, ...]) -> None:
    check_own_signer(
        trust,
        principal=ADA,
        public_key=key.public_key,
        roles=roles,
        namespace="prereg-seal",
        at=NOON,
        where="--key",
    )


def test_the_signer_that_was_chosen_is_a_usage_error(tmp_path: Path) -> None:
    paths = asked_study(tmp_path)
    seal(paths)
    for verb, who, more in (
        ("collect", "rex", ()),
        ("deviate", "rex", ("--text", "x")),
        ("close", "col", ("--reason", "x")),
        ("collect", "eve", ()),
        ("close", "eve", ("--reason", "x", "--as", ADA)),
    ):
        done = prereg(verb, "studies/coin", "--key", f"../keys/{who}", *more, cwd=paths.repository)
        assert done.returncode == 2, (verb, who, done.stderr)
        assert "prereg key" in done.stderr and "git checkout" not in done.stderr
    assert (paths.repository / "trust").is_dir()
