"""The numbered steps: each fault is found by its step, and named with its file."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from prereg.codec.canonical import digest, dump_file
from prereg.errors import EvidenceIncomplete, VerificationFailed, WrongState
from prereg.model.plan import plan
from prereg.model.seal import Step
from prereg.seal.evidence import authenticated_records
from prereg.seal.head import head_bytes
from prereg.seal.verify import STEPS, verify_report, verify_study
from prereg.store.files import write_whole
from prereg.store.folder import leftovers
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter, append, head_of, read_ledger, repair
from tests.unit.seal_kit import (
    SHARD,
    Tamper,
    chmod,
    fails,
    lines,
    link,
    put,
    remove,
    replace,
    resign_head,
    then,
)
from tests.unit.study_fixture import (
    ENVIRONMENTS,
    copy_repository,
    fabricate_records,
    git,
    make_study,
    records_of,
    seal,
    signing_key,
)


class TestSoundStudies:
    def test_a_sealed_study(self, sealed_once: StudyPaths) -> None:
        verified = verify_study(sealed_once, need="sealed")
        assert verified.state == "sealed"
        assert verified.seal == digest(sealed_once.manifest.read_bytes())
        assert verified.signed == 1
        assert verified.files["coin.py"] == (sealed_once.root / "coin.py").read_bytes()
        assert set(verified.files) == {f.path for f in verified.manifest.files}
        assert len(verified.missing()) == 8
        assert len(verified.lost()) == 4
        statuses = {s.number: s.status for s in verify_report(sealed_once)}
        assert statuses == {**dict.fromkeys(range(1, 10), "ok"), 7: "not-checked", 8: "not-checked"}

    def test_a_collected_study_and_its_records(self, collected_once: StudyPaths) -> None:
        verified = verify_study(collected_once, need=("collected", "analysed"))
        assert verified.state == "collected"
        assert verified.head == head_of(collected_once.ledger.read_bytes())
        assert not verified.missing()
        found = list(authenticated_records(verified))
        assert [unit.id for unit, _ in found] == [u.id for u in verified.study.protocol.units()]
        shards = plan(verified.study.protocol, verified.study.seeds)
        expected = [r for s in shards for r in records_of(verified.seal, s)]
        assert [r for _, records in found for r in records] == expected
        report = verify_report(collected_once)
        assert [s.status for s in report] == ["ok"] * 7 + ["not-checked", "ok"]
        assert report[6].detail == "8 shards, 48 draws, 0 units INVALID"

    def test_steps_are_numbered_from_one_to_nine(self) -> None:
        assert [number for number, _, _ in STEPS] == list(range(1, 10))

    def test_an_invalid_unit_is_left_out(self, sealed: StudyPaths) -> None:
        fabricate_records(sealed, invalid={"main.fair.new": "ceiling"})
        verified = verify_study(sealed, need="collected")
        assert verified.invalid == {"main.fair.new": "ceiling"}
        assert verified.lost() == {"main.fair.new"}
        assert "main.fair.new" not in [unit.id for unit, _ in authenticated_records(verified)]

    @pytest.mark.parametrize("missing", ["refuse", "bound"])
    def test_a_unit_with_a_shard_missing(self, tmp_path: Path, missing: str) -> None:
        paths = make_study(tmp_path, missing=missing)
        seal(paths)
        fabricate_records(paths, skip=[("main.fair.new", 1)])
        verified = verify_study(paths, need="collecting")
        assert [s.name for s in verified.missing()] == ["00001"]
        if missing == "refuse":
            with pytest.raises(EvidenceIncomplete, match=r"unit main\.fair\.new"):
                next(authenticated_records(verified))
        else:
            assert len(list(authenticated_records(verified))) == 3

    def test_a_clone_verifies(self, collected: StudyPaths, tmp_path: Path) -> None:
        git(tmp_path, "clone", "-q", "--no-tags", str(collected.repository), str(tmp_path / "clone"))
        verify_study(StudyPaths(root=tmp_path / "clone" / "studies" / "coin"), need="collected")

    def test_report_is_free(self, collected: StudyPaths) -> None:
        collected.report.mkdir()
        (collected.report / "x.html").symlink_to("/etc/hostname")
        verify_study(collected)

    def test_a_draft_is_in_the_wrong_state(self, tmp_path: Path) -> None:
        paths = make_study(tmp_path)
        for call in (verify_study, verify_report):
            with pytest.raises(WrongState, match="not sealed") as caught:
                call(paths)
            assert caught.value.next_step == f"prereg seal {paths.root}"

    def test_a_state_that_is_not_needed_names_the_next_verb(self, sealed: StudyPaths) -> None:
        with pytest.raises(
            WrongState, match="the study is sealed; this needs collected or analysed"
        ) as caught:
            verify_study(sealed, need=("collected", "analysed"))
        assert caught.value.next_step == f"prereg collect {sealed.root}"


def swap_shards(paths: StudyPaths) -> None:
    for kind in ("jsonl.gz", "meta.json"):
        one, two = (paths.records / f"main.fair.{arm}" / f"00000.{kind}" for arm in ("old", "new"))
        a, b = one.read_bytes(), two.read_bytes()
        one.write_bytes(b)
        two.write_bytes(a)


def reseal(paths: StudyPaths) -> None:
    """Alter a file and carry the change through manifest and sums, with an unknown key's signature."""
    (paths.root / "NOTES.md").write_text("other")
    value = json.loads(paths.manifest.read_bytes())
    entry = next(f for f in value["files"] if f["path"] == "NOTES.md")
    old_seal, old = digest(paths.manifest.read_bytes()), entry["sha256"]
    entry |= {"size": 5, "sha256": digest(b"other")}
    value["author"]["key"] = signing_key(paths, "eve").fingerprint
    data = dump_file(value)
    paths.manifest.write_bytes(data)
    paths.manifest_signature.write_bytes(signing_key(paths, "eve").sign(data, namespace="prereg-seal"))
    sums = paths.sums.read_text().replace(old, digest(b"other")).replace(old_seal, digest(data))
    paths.sums.write_text(sums)


ROWS: list[tuple[str, Tamper, int, str | None, str]] = [
    ("an unlisted file", put("extra.txt", b"x"), 3, "extra.txt", "is not listed"),
    ("an unlisted file in code", put("code/harness/x.py", b"x"), 3, "code/harness/x.py", "is not listed"),
    ("a cache", put("code/harness/__pycache__/x.pyc", b"x"), 3, "code/harness/__pycache__/x.pyc",
     "not listed"),
    ("an empty folder", lambda p: (p.root / "empty").mkdir(), 3, "empty", "folder without a file"),
    ("an unknown file in seal", put("seal/more", b"x"), 1, "seal/more", "no known place"),
    ("an unknown record", put("records/x", b"x"), 1, "records/x", "no known place"),
    ("an unknown folder", lambda p: (p.records / "x").mkdir(), 1, "records/x", "no known folder"),
    ("a link", link("NOTES.md", "coin.py"), 1, "NOTES.md", "is a link"),
    ("a link to a copy outside", then(lambda p: shutil.copy(p.ledger, p.repository / "l"),
                                       link("ledger.jsonl", "../../l")), 1, "ledger.jsonl", "is a link"),
    ("a pipe", lambda p: os.mkfifo(p.root / "pipe"), 1, "pipe", "neither"),
    ("a hard link", lambda p: (p.repository / "h").hardlink_to(p.root / "coin.py"), 3, "coin.py",
     "hard link"),
    ("no manifest", remove("seal/manifest.json"), 2, "seal/manifest.json", "missing"),
    ("a manifest laid out freely", replace("seal/manifest.json", b'"rules":1', b'"rules": 1'), 2,
     "seal/manifest.json", "not in canonical form"),
    ("a manifest of other rules", replace("seal/manifest.json", b'"rules":1', b'"rules":2'), 2,
     "seal/manifest.json#/rules", "was expected"),
    ("a missing file", remove("coin.py"), 3, "coin.py", "missing"),
    ("a changed file", replace("coin.py", b"250", b"251"), 3, "coin.py", "SHA-256 is not the one"),
    ("CRLF", lambda p: (p.root / "coin.py").write_bytes(
        (p.root / "coin.py").read_bytes().replace(b"\n", b"\r\n")), 3, "coin.py", "CRLF-mangled"),
    ("another mode", chmod("coin.py", 0o755), 3, "coin.py", "has mode 100755"),
    ("changed sums", replace("seal/SHA256SUMS", b"  NOTES.md", b" *NOTES.md"), 3, "seal/SHA256SUMS",
     "disagrees"),
    ("no sums", remove("seal/SHA256SUMS"), 3, "seal/SHA256SUMS", "missing"),
    ("no signature", remove("seal/manifest.json.sig"), 4, "seal/manifest.json.sig", "missing"),
    ("another namespace's signature", lambda p: p.manifest_signature.write_bytes(
        signing_key(p).sign(p.manifest.read_bytes(), namespace="prereg-ledger")), 4,
     "seal/manifest.json.sig", "is for namespace"),
    ("another key's signature", lambda p: p.manifest_signature.write_bytes(
        signing_key(p, "rex").sign(p.manifest.read_bytes(), namespace="prereg-seal")), 4,
     "seal/manifest.json.sig", "not by the author's key"),
    ("a seal by an unknown key", reseal, 4, "seal/manifest.json.sig", "is not ada@example.org's"),
    ("trust withdrawn", lambda p: p.allowed_signers.write_text(
        p.allowed_signers.read_text().replace("ada@", "bob@")), 4, "seal/manifest.json.sig", "is not ada"),
    ("no trust", lambda p: p.allowed_signers.unlink(), 4, None, "missing"),
    ("the reviewer made an author", lambda p: p.roles.write_text(
        p.roles.read_text().replace('"reviewer"', '"author", "reviewer"')), 4, None,
     "both author and reviewer"),
    ("no ledger", remove("ledger.jsonl"), 6, "ledger.jsonl", "missing"),
    ("ledger: drop the last", lines(lambda x: x[:-1]), 6, "ledger.head.json#/seq", "entries are missing"),
    ("ledger: drop a middle one", lines(lambda x: x[:2] + x[3:]), 6, "ledger.jsonl:3#/seq", "has seq 4"),
    ("ledger: reorder", lines(lambda x: [x[0], x[2], x[1], *x[3:]]), 6, "ledger.jsonl:2#/seq", "has seq 3"),
    ("ledger: duplicate", lines(lambda x: [*x[:3], x[2], *x[3:]]), 6, "ledger.jsonl:4#/seq", "has seq 3"),
    ("ledger: edit", replace("ledger.jsonl", b'"draws":6', b'"draws":5'), 6, "ledger.jsonl:3#/body_sha256",
     "not the digest of the body"),
    ("ledger: truncate", lambda p: p.ledger.write_bytes(p.ledger.read_bytes()[:-7]), 6, "ledger.jsonl:11",
     "cut off"),
    ("ledger: drop the last, head signed anew by a stranger",
     then(lines(lambda x: x[:-1]), lambda p: resign_head(p, "eve")), 6, "ledger.head.json.sig", "is not col"),
    ("ledger: drop the last, head signed anew by its actor", then(lines(lambda x: x[:-1]), resign_head), 9,
     "ledger.jsonl", "the present one does not continue"),
    ("no head", remove("ledger.head.json"), 6, "ledger.head.json", "missing"),
    ("no head signature", remove("ledger.head.json.sig"), 6, "ledger.head.json.sig", "missing"),
    ("head: another time", replace("ledger.head.json", b'"time":"20', b'"time":"19'), 6,
     "ledger.head.json#/time", "not the time"),
    ("head: another actor", replace("ledger.head.json", b"col@", b"ada@"), 6, "ledger.head.json#/actor",
     "actor"),
    ("head: another study", replace("ledger.head.json", b'"study":"coin"', b'"study":"cain"'), 6,
     "ledger.head.json#/study", "belongs to study 'cain'"),
    ("head of an earlier state", lambda p: git(p.repository, "checkout", "HEAD~1", "--",
     "studies/coin/ledger.head.json",
     "studies/coin/ledger.head.json.sig"), 6, "ledger.head.json#/seq", "the later ones are not signed"),
    ("an entry not signed", lambda p: append(
        p, "analysis", {"seal": digest(p.manifest.read_bytes()), "decisions_sha256": "0" * 64},
        "ada@example.org"), 6, "ledger.head.json#/seq", "the later ones are not signed"),
    ("a shard's records gone", remove(f"{SHARD}.jsonl.gz"), 7, f"{SHARD}.jsonl.gz", "missing"),
    ("a shard's meta gone", remove(f"{SHARD}.meta.json"), 7, f"{SHARD}.meta.json", "missing"),
    ("a shard of no plan", put("records/main.fair.old/00007.jsonl.gz", b"x"), 7,
     "records/main.fair.old/00007.jsonl.gz", "no shard of the plan"),
    ("a shard of no unit", put("records/main.other.old/00000.jsonl.gz", b"x"), 7,
     "records/main.other.old", "no unit of the plan"),
    ("shards swapped", swap_shards, 7, "records/main.fair.old/00000.meta.json", "ledger's meta_sha256"),
    ("a changed meta", replace(f"{SHARD}.meta.json", b"not-cut", b"cut"), 7, f"{SHARD}.meta.json",
     "ledger's"),
    ("a changed shard", lambda p: (p.root / f"{SHARD}.jsonl.gz").write_bytes(b"x"), 7, f"{SHARD}.jsonl.gz",
     "not the ledger's"),
    ("decisions without an entry", put("analysis/decisions.json", b"{}\n"), 8, "analysis/decisions.json",
     "no ledger entry"),
    ("an audit without an entry", put("audit/report.json", b"{}\n"), 8, "audit/report.json",
     "no ledger entry"),
    ("an audit signature without an entry", put("audit/report.json.sig", b""), 8, "audit/report.json.sig",
     "no ledger entry"),
    ("no git", lambda p: shutil.rmtree(p.repository / ".git"), 9, None, "not in a git work tree"),
    ("a partial", put("records/main.fair.old/.00001.jsonl.gz.99.partial", b"x"), 1,
     "records/main.fair.old/.00001.jsonl.gz.99.partial", "unfinished write of records/main.fair.old/00001"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tamper", "step", "where", "what"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_fault_is_found_by_its_step_and_named(
    collected: StudyPaths, tamper: Tamper, step: int, where: str | None, what: str
) -> None:
    tamper(collected)
    error = fails(collected, step, what)
    if where is not None:
        assert error.where == where
    assert error.exit_code in (1, 3, 4)


def test_the_report_goes_on_after_a_failure(collected: StudyPaths) -> None:
    (collected.root / "extra").write_text("x")
    (collected.root / f"{SHARD}.jsonl.gz").write_bytes(b"x")
    report = verify_report(collected)
    assert [s.number for s in report] == list(range(1, 10))
    assert [s.status for s in report[:2]] == ["ok", "ok"]
    assert "extra: is not listed" in report[2].detail
    assert report[3].status == "ok"
    assert report[4].detail == "cannot be checked: step 3 failed"
    assert all(isinstance(s, Step) for s in report)


class TestWhatAKilledVerbLeaves:
    def test_partials_and_orphans_pass_only_when_they_are_allowed(self, sealed: StudyPaths) -> None:
        fabricate_records(sealed, skip=[("main.fair.new", 1)])
        put("records/main.fair.new/.00001.jsonl.gz.9.partial", b"x")(sealed)
        put("records/main.fair.new/00001.jsonl.gz", b"x")(sealed)
        put(".ledger.head.json.9.partial", b"x")(sealed)
        error = fails(sealed, 1, "unfinished write")
        assert error.next_step is not None
        verified = verify_study(sealed, need="collecting", allow_partials=True)
        assert [s.name for s in verified.missing()] == ["00001"]
        for path in leftovers(sealed):
            path.unlink()
        assert fails(sealed, 7, "no ledger entry").next_step == "prereg collect DIR"

    def test_a_head_behind_the_ledger(self, sealed: StudyPaths) -> None:
        verified = verify_study(sealed)
        body = {
            "seal": verified.seal,
            "attempt": 1,
            "environments": dict(verified.manifest.environments),
            "workers": 1,
            "network": "cut",
            "network_reason": None,
        }
        append(sealed, "collection-started", body, "col@example.org")
        assert fails(sealed, 6, "not signed, as a killed run").next_step == "prereg collect DIR"
        again = verify_study(sealed, need=("sealed", "collecting"), allow_partials=True)
        assert (again.signed, len(again.entries), again.state) == (1, 2, "collecting")

    def test_a_head_and_signature_of_different_moments(self, sealed: StudyPaths) -> None:
        verified = verify_study(sealed)
        body = {"unit": "main.fair.old", "attempt": 1, "reason": "x"}
        start = {"seal": verified.seal, "attempt": 1, "environments": ENVIRONMENTS, "workers": 1}
        with LedgerWriter.open(sealed) as writer:
            started = {**start, "network": "cut", "network_reason": None}
            writer.append("collection-started", started, "col@example.org")
            writer.append("unit-invalid", body, "col@example.org")
        data = sealed.ledger.read_bytes()
        write_whole(sealed.head, head_bytes("coin", read_ledger(data), head_of(data)))
        fails(sealed, 6, "does not match the signed bytes")
        assert verify_study(sealed, allow_partials=True).signed == 1
        write_whole(sealed.head_signature, b"junk")
        assert verify_study(sealed, allow_partials=True).signed == 1

    def test_a_torn_line_is_repaired_and_nothing_else_is_lost(self, collected: StudyPaths) -> None:
        with collected.ledger.open("ab") as handle:
            handle.write(b'{"actor":"col@ex')
        fails(collected, 6, "cut off")
        assert repair(collected) is not None
        verify_study(collected, need="collected")

    def test_tampering_is_still_refused_when_partials_are_allowed(self, collected: StudyPaths) -> None:
        for tamper, step in (
            (replace("coin.py", b"250", b"251"), 3),
            (put("extra", b"x"), 3),
            (put(".extra.9.partial", b"x"), 3),
        ):
            copy = copy_repository(collected, collected.repository.parent.parent / f"c{step}{id(tamper)}")
            tamper(copy)
            with pytest.raises(VerificationFailed, match=f"step {step}"):
                verify_study(copy, allow_partials=True)
