"""Cosigners, timestamps and revoked keys of a whole study: section 17, and the states of section 18."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan, second_plan
from audits_seals import (
    ROOT,
    SIGNERS,
    TIME,
    Sealed,
    Step,
    amend,
    build,
    cosign,
    enter,
    revoke,
    rewrite,
    second,
    stamp,
)
from audits_stamps import authority
from audits_tools import make_key

ASKED = {"timestamp": {"roots": "roots.pem"}}
SOON = "2026-11-29T10:00:04.000001+00:00"
LATE = "2026-11-29T11:00:00+00:00"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_keys(tmp_path_factory.mktemp("audit-keys"))
    make_key(folder, "third")
    return folder


def details(builder: Sealed, number: int, **options: Any) -> str:
    outcome = look(builder.folder, **options)
    assert failed(outcome) == {}
    assert all(outcome.status(n) == "ok" for n in range(1, 8)), outcome.value()["steps"]
    return outcome.steps[number].detail()


def test_two_of_three_signatures(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(signers=SIGNERS), cosign())
    assert "2 of 2 signatures" in details(builder, 4)
    assert look(builder.folder).steps[4].applied == 2


def test_a_whole_study_with_all_that_may_come_to_a_seal(tmp_path: Path, keys: Path) -> None:
    asked = ASKED | {"signers": SIGNERS, "runtime": "container"}
    steps = (cosign(), stamp(), amend(), cosign(), stamp(), enter("deviation", about=[], text="late"))
    plan = second(make=second_plan, upto="audited", **asked)
    outcome = look(build(tmp_path, keys, plan, *steps).folder)
    assert outcome.result == "AGREES", failed(outcome)
    assert outcome.steps[4].applied == 6


def test_whoever_sealed_need_not_be_in_the_list(tmp_path: Path, keys: Path) -> None:
    signers = {"need": 2, "principals": ["bob@example.org", "cat@example.org"]}
    builder = build(tmp_path, keys, second(signers=signers), cosign(), cosign("cat"))
    assert "2 of 2 signatures" in details(builder, 4)


def test_a_seal_that_is_not_complete_yet_is_no_fault(tmp_path: Path, keys: Path) -> None:
    plan = second(signers=SIGNERS, upto="sealed")
    outcome = look(build(tmp_path, keys, plan).folder)
    assert failed(outcome) == {}
    assert "1 of 2 signatures" in outcome.steps[4].detail()


def _same_key(b: Sealed) -> None:
    signers = b.root / "trust/allowed_signers"
    lines = [line for line in signers.read_text().splitlines() if not line.startswith("bob@")]
    lines.append("bob@example.org " + (b.keys / "author.pub").read_text().strip())
    signers.write_text("\n".join(lines) + "\n")
    b.commit("one key for two")


CASES: dict[str, tuple[tuple[Step, ...], dict[str, Any], int, str]] = {
    "too few": ((), {"signers": SIGNERS}, 4, "not complete there: 1 of 2"),
    "without a file": ((cosign(file=False),), {"signers": SIGNERS}, 4, "1 of 2"),
    "without an entry": ((cosign(entries=0),), {"signers": SIGNERS}, 4, "0 `cosigned` entries"),
    "two entries": ((cosign(entries=2),), {"signers": SIGNERS}, 6, "once for each seal"),
    "by another key": ((cosign(key="collector"),), {"signers": SIGNERS}, 4, "not an allowed key"),
    "by one who is not in the list": (
        (cosign("cat"),), {"signers": {"need": 1, "principals": ["ann@example.org", "bob@example.org"]}}, 4,
        "not among the signers",
    ),
    "by who sealed": ((cosign("ann"),), {"signers": SIGNERS}, 4, "does not countersign"),
    "one key for two": ((_same_key, cosign(key="author")), {"signers": SIGNERS}, 4, "1 of 2"),
    "no signers": ((cosign(),), {}, 4, "names no signers"),
    "no collector may": ((cosign("col"),), {"signers": SIGNERS}, 6, "no role author"),
    "of an amended seal only": ((cosign(), amend()), {"signers": SIGNERS}, 4, "1 of 2"),
    "a timestamp not asked for": ((stamp(),), {}, 4, "asks for no timestamp"),
    "no timestamp": ((), ASKED, 6, "asks for a timestamp"),
    "a timestamp without its entry": ((stamp(entries=0),), ASKED, 6, "asks for a timestamp"),
    "a timestamp of an amended seal without its entry": (
        (stamp(entries=0), amend(), stamp()), ASKED, 6,
        "timestamp.tsr: the ledger has no `timestamped` entry",
    ),
    "a timestamp whose files are gone": (
        (stamp(), rewrite("seal/timestamp.tsq", None), rewrite("seal/timestamp.tsr", None)), ASKED, 6,
        "seal/timestamp.tsq: missing",
    ),
    "two timestamps": ((stamp(entries=2),), ASKED, 6, "once for each seal"),
    "a timestamp with another time": ((stamp(time=LATE),), ASKED, 6, "genTime is 2026-11-29T10:00:03.25"),
    "a timestamp with another token": ((stamp(token_sha256="0" * 64),), ASKED, 6, "/body/token_sha256"),
    "a request alone": (
        (stamp(), rewrite("seal/timestamp.tsr", None)), ASKED, 4, "seal/timestamp.tsr: missing",
    ),
    "a token of a stranger": (
        (stamp(lambda s: s.with_(chain=(authority("middle", authority("stranger")),))),), ASKED, 4,
        "no chain",
    ),
    "a token of other bytes": ((stamp(lambda s: s.with_(data=b"x")),), ASKED, 4, "imprint of the token"),
    "roots that are not there": ((), {"timestamp": {"roots": "other.pem"}}, 5, "not in the manifest"),
    "a timestamp of an amended seal only": ((stamp(), amend()), ASKED, 6, "asks for a timestamp"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_seal_that_is_not_signed_as_asked(tmp_path: Path, keys: Path, name: str) -> None:
    steps, protocol, number, says = CASES[name]
    found = failed(look(build(tmp_path, keys, second(**protocol), *steps).folder))
    assert number in found, found
    assert says in found[number]


def test_more_signatures_than_there_are_signers(tmp_path: Path, keys: Path) -> None:
    plan = second(signers=SIGNERS | {"need": 4}, upto="sealed")
    found = failed(look(build(tmp_path, keys, plan).folder))
    assert set(found) == {5} and "needs 4 of 3 principals" in found[5]


def test_a_cosigner_after_the_collection_started(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(signers=SIGNERS), after=(cosign(),))
    found = failed(look(builder.folder))
    assert "1 of 2" in found[4]
    assert "a collection was started" in found[6]


def test_a_timestamp_is_verified(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(**ASKED), stamp())
    assert f"timestamp verified, {TIME.isoformat()}" in details(builder, 4)
    assert look(builder.folder).steps[4].applied == 2


def test_a_timestamp_that_is_owed(tmp_path: Path, keys: Path) -> None:
    plan = second(upto="sealed", **ASKED)
    outcome = look(build(tmp_path, keys, plan).folder)
    assert failed(outcome) == {}
    assert "timestamp owed" in outcome.steps[4].detail()


def test_a_timestamp_of_the_present_seal_may_wait_for_its_entry_until_data_are_drawn(
    tmp_path: Path, keys: Path
) -> None:
    builder = build(tmp_path, keys, second(upto="sealed", **ASKED), stamp(entries=0))
    assert not failed(look(builder.folder))


def test_the_timestamp_of_an_amended_seal_is_judged_too(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(**ASKED), stamp(), amend(), stamp())
    assert details(builder, 4).count("timestamp verified") == 2
    bad = build(tmp_path / "2", keys, second(**ASKED), stamp(lambda s: s.with_(nonce=1)), amend(), stamp())
    assert "seal/lineage/" in failed(look(bad.folder))[4]


def test_the_roots_of_an_amended_seal_that_are_not_kept(tmp_path: Path, keys: Path) -> None:
    def other_roots(b: Sealed) -> None:
        b.write("roots.pem", authority("other-root").pem + ROOT.pem)

    builder = build(tmp_path, keys, second(**ASKED), stamp(), amend(other_roots), stamp())
    assert "its roots are not kept" in details(builder, 4)


@pytest.mark.parametrize("reason", ["superseded", "lost"])
def test_a_key_that_was_revoked_later(tmp_path: Path, keys: Path, reason: str) -> None:
    builder = build(tmp_path, keys, second(signers=SIGNERS), cosign())
    for key in ("author", "stranger", "collector"):
        revoke(builder, key, LATE, reason)
        assert "2 of 2" in details(builder, 4)


@pytest.mark.parametrize(
    ("key", "numbers"), [("author", {4, 9}), ("stranger", {4, 9}), ("collector", {6, 9})]
)
@pytest.mark.parametrize(
    ("at", "reason"), [("2026-11-29T10:00:00.000001+00:00", "superseded"), (LATE, "compromised")]
)
def test_a_key_that_was_revoked(
    tmp_path: Path, keys: Path, key: str, numbers: set[int], at: str, reason: str
) -> None:
    """What a compromised key signed counts at no time that its holder wrote."""
    builder = build(tmp_path, keys, second(signers=SIGNERS), cosign())
    revoke(builder, key, at, reason)
    found = failed(look(builder.folder))
    assert set(found) == numbers, found
    assert all(f"revoked at {at[:19]}" in text and reason in text for text in found.values())


def test_a_timestamp_saves_the_seal_of_a_compromised_key_and_nothing_else(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(**ASKED), stamp())
    revoke(builder, "author", LATE, "compromised")
    assert set(failed(look(builder.folder))) == {9}
    revoke(builder, "author", TIME.isoformat(), "compromised")
    assert set(failed(look(builder.folder))) == {4, 9}


def test_the_seal_is_judged_at_its_stamped_time(tmp_path: Path, keys: Path) -> None:
    """It says that it was made before the key was revoked, and was stamped after."""
    at = "2026-11-29T10:00:03.25+00:00"
    builder = build(tmp_path, keys, second(**ASKED), stamp())
    revoke(builder, "author", at, "superseded")
    assert "and the signature is of 2026-11-29T10:00:03.25" in failed(look(builder.folder))[4]


def _revocations(*days: int) -> str:
    items = [
        {"key": f"SHA256:{'A' * 43}", "at": f"2026-02-{day}T00:00:00+00:00", "reason": "lost", "note": ""}
        for day in days
    ]
    return json.dumps({"schema": "prereg/revocations/v1", "revocations": items})


REVOCATIONS = {
    "not JSON": "{",
    "another schema": '{"schema":"prereg/revocations/v2","revocations":[]}',
    "no day": _revocations(30),
    "twice": _revocations(20, 20),
}


def test_revocations_that_cannot_be_read_are_a_fault_in_both_editions(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, Plan(upto="sealed"))
    for data in REVOCATIONS.values():
        (builder.root / "trust/revocations.json").write_text(data)
        assert "trust/revocations.json" in failed(look(builder.folder))[4]
    (builder.root / "trust/revocations.json").unlink()
    assert failed(look(builder.folder)) == {}
    named = tmp_path / "none.json"
    assert "none.json" in failed(look(builder.folder, revocations=named))[4]
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(builder.root / "trust", elsewhere)
    (elsewhere / "revocations.json").write_text("{")
    assert (
        "elsewhere/revocations.json" in failed(look(builder.folder, signers=elsewhere / "allowed_signers"))[4]
    )
    (builder.root / "trust/revocations.json").symlink_to("nowhere")
    assert "trust/revocations.json" in failed(look(builder.folder))[4]
    (builder.root / "trust/revocations.json").unlink()
    revoke(builder, "author", "2026-01-01T00:00:00+00:00", "lost")
    assert 4 in failed(look(builder.folder))


def test_revocations_that_only_head_has_still_are_asked_for(tmp_path: Path, keys: Path) -> None:
    """Taken out of the folder, or changed there, they would let a revoked key count again."""
    builder = build(tmp_path, keys, Plan(upto="sealed"))
    path = builder.root / "trust/revocations.json"
    revoke(builder, "stranger", LATE, "lost")
    assert failed(look(builder.folder)) == {}
    builder.commit("a key was lost")
    assert failed(look(builder.folder)) == {}
    whole = path.read_bytes()
    path.write_bytes(whole + b"\n")
    named = tmp_path / "named.json"
    named.write_bytes(whole)
    for options in ({}, {"without_history": True}, {"revocations": named}):
        found = failed(look(builder.folder, **options))
        assert "trust/revocations.json: HEAD has other bytes" in found[4]
    path.unlink()
    found = failed(look(builder.folder))
    assert "trust/revocations.json: HEAD has it, and here" in found[4]
    builder.commit("no key is revoked")
    assert failed(look(builder.folder)) == {}
