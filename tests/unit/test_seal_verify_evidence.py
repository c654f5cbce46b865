"""Verification against forged seals, entries against the plan, decisions, audits and order."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest, dump_file
from prereg.errors import VerificationFailed
from prereg.model.plan import plan
from prereg.seal.head import head_bytes, sign_head
from prereg.seal.trust import add_signer
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import verify_report, verify_study
from prereg.store.files import write_whole
from prereg.store.layout import StudyPaths
from prereg.store.ledger import LedgerWriter, append, head_of, line_digests, parse_time, read_ledger
from prereg.store.repo import Repo
from tests.unit.seal_kit import (
    enter,
    fails,
    finish,
    flip,
    forge,
    put,
    replace,
    resign_head,
)
from tests.unit.study_fixture import (
    copy_repository,
    fabricate_records,
    git,
    make_study,
    seal,
    signing_key,
    store_shard,
)


class TestSealsThatAnAuthorForged:
    def test_a_seal_made_anew_is_sound(self, sealed: StudyPaths) -> None:
        forge(sealed)
        verify_study(sealed, need="sealed")

    def test_a_size(self, sealed: StudyPaths) -> None:
        forge(sealed, lambda m: m["files"][0].__setitem__("size", 1))
        assert fails(sealed, 3, "seal/manifest.json says 1").where == ".gitattributes"

    def test_a_study(self, sealed: StudyPaths) -> None:
        forge(sealed, lambda m: m.__setitem__("study", "other"))
        assert fails(sealed, 5, "is not the study").where == "protocol.json#/study"

    def test_environments(self, sealed: StudyPaths) -> None:
        forge(sealed, lambda m: m["environments"].__setitem__("more", "0" * 64))
        assert fails(sealed, 5, "protocol's builds").where == "seal/manifest.json#/environments"

    def test_an_unsafe_path(self, sealed: StudyPaths) -> None:
        forge(sealed, lambda m: m["files"][0].__setitem__("path", "../x"))
        assert fails(sealed, 2, "empty part").where == "seal/manifest.json#/files/0/path"

    def test_a_time_that_does_not_exist(self, sealed: StudyPaths) -> None:
        paths_manifest = json.loads(sealed.manifest.read_bytes())
        sealed.manifest.write_bytes(dump_file({**paths_manifest, "created": "2026-02-30T00:00:00+00:00"}))
        assert fails(sealed, 2, "no such time").where == "seal/manifest.json#/created"

    @pytest.mark.parametrize(
        ("field", "value", "what"),
        [
            ("seal", "0" * 64, "not this study's seal digest"),
            ("signature_sha256", "0" * 64, "not the digest of seal/manifest.json.sig"),
            ("commit", "0" * 40, "not the manifest's commit"),
        ],
    )
    def test_a_sealed_entry(self, sealed: StudyPaths, field: str, value: str, what: str) -> None:
        forge(sealed, **{field: value})
        assert fails(sealed, 6, what).where == f"ledger.jsonl:1#/body/{field}"

    def test_a_sealed_entry_by_another_author(self, sealed: StudyPaths) -> None:
        add_signer(sealed.repository, "eve@example.org", signing_key(sealed, "eve").public_line, ["author"])
        forge(sealed, actor="eve")
        assert fails(sealed, 6, "not the manifest's author").where == "ledger.jsonl:1#/actor"

    def test_a_head_of_other_bytes(self, sealed: StudyPaths) -> None:
        entries = read_ledger(sealed.ledger.read_bytes())
        sealed.head.write_bytes(head_bytes("coin", entries, "0" * 64))
        sealed.head_signature.write_bytes(sign_head(sealed.head.read_bytes(), signing_key(sealed)))
        assert fails(sealed, 6, "not the digest of line 1").where == "ledger.head.json#/head"

    def test_a_head_signed_in_another_namespace(self, sealed: StudyPaths) -> None:
        data = sealed.head.read_bytes()
        sealed.head_signature.write_bytes(signing_key(sealed).sign(data, namespace="prereg-seal"))
        assert fails(sealed, 6, "is for namespace").where == "ledger.head.json.sig"


class TestEntriesAgainstThePlan:
    def start(self, verified: VerifiedStudy, **changes: Any) -> dict[str, Any]:
        return {
            "seal": verified.seal,
            "attempt": 1,
            "environments": dict(verified.manifest.environments),
            "workers": 1,
            "network": "cut",
            "network_reason": None,
            **changes,
        }

    def stored(self, **changes: Any) -> dict[str, Any]:
        zero = {"records_sha256": "0" * 64, "records_size": 1, "meta_sha256": "0" * 64}
        return {"unit": "main.fair.old", "shard": 0, "attempt": 1, "draws": 6, **zero, **changes}

    @pytest.mark.parametrize(
        ("entries", "where", "what"),
        [
            ([("start", {"seal": "0" * 64})], ":2#/body/seal", "not this study's seal"),
            ([("start", {"environments": {"plain": "0" * 64}})], ":2#/body/environments/plain", "sealed"),
            ([("start", {"environments": {"other": "0" * 64}})], ":2#/body/environments/other", "sealed"),
            ([("start", {"environments": {}})], ":2#/body/environments/plain", "sealed"),
            ([("stored", {"unit": "main.fair.x"})], ":3#/body/unit", "there is no unit"),
            ([("stored", {"shard": 9})], ":3#/body/shard", "no shard of the plan"),
            ([("stored", {"draws": 5})], ":3#/body/draws", "the plan says 6"),
            ([("stored", {}), ("stored", {})], ":4#/body/shard", "stored before"),
            ([("end", {"stored": 1})], ":3#/body/stored", "0 shards are stored"),
            ([("end", {"invalid": ["main.fair.old"]})], ":3#/body/invalid", "not the set of units"),
            ([("end", {"complete": True})], ":3#/body/complete", "8 shards are missing"),
        ],
    )
    def test_a_body_that_disagrees(
        self, sealed: StudyPaths, entries: list[tuple[str, dict[str, Any]]], where: str, what: str
    ) -> None:
        verified = verify_study(sealed)
        if entries[0][0] != "start":
            append(sealed, "collection-started", self.start(verified), "col@example.org")
        for kind, changes in entries:
            if kind == "start":
                append(sealed, "collection-started", self.start(verified, **changes), "col@example.org")
            elif kind == "stored":
                append(sealed, "shard-stored", self.stored(**changes), "col@example.org")
            else:
                body = {"seal": verified.seal, "complete": False, "stored": 0, "invalid": [], **changes}
                append(sealed, "collection-ended", body, "col@example.org")
        resign_head(sealed)
        assert fails(sealed, 6, what).where == f"ledger.jsonl{where}"

    @pytest.mark.parametrize(
        ("who", "role"), [("rex", "collector or author"), ("eve", "collector or author")]
    )
    def test_an_actor_without_the_role(self, sealed: StudyPaths, who: str, role: str) -> None:
        verified = verify_study(sealed)
        append(sealed, "collection-started", self.start(verified), f"{who}@example.org")
        body = {"seal": verified.seal, "complete": False, "stored": 0, "invalid": []}
        append(sealed, "collection-ended", body, "col@example.org")
        resign_head(sealed)
        assert fails(sealed, 6, f"has no role {role}").where == "ledger.jsonl:2#/actor"

    def test_an_analysis_is_not_a_collectors(self, collected: StudyPaths) -> None:
        seal_digest = digest(collected.manifest.read_bytes())
        enter(collected, "analysis", {"seal": seal_digest, "decisions_sha256": "0" * 64}, "col")
        fails(collected, 6, "has no role author")

    def test_an_analysis_of_what_is_missing_needs_a_protocol_that_bounds_it(self, sealed: StudyPaths) -> None:
        fabricate_records(sealed, skip=[("main.fair.old", 0)])
        seal_digest = digest(sealed.manifest.read_bytes())
        enter(sealed, "analysis", {"seal": seal_digest, "decisions_sha256": "0" * 64}, "ada")
        error = fails(sealed, 6, "shards are missing, and the protocol does not bound them")
        assert error.where == f"ledger.jsonl:{len(sealed.ledger.read_bytes().splitlines())}#/type"

    def test_head_of_the_last_entry_is_not_another_persons(self, collected: StudyPaths) -> None:
        with pytest.raises(VerificationFailed, match="cannot sign its head"):
            finish(collected, "ada")


class TestTheNetworkOfAShard:
    def collect(self, paths: StudyPaths, networks: list[str]) -> None:
        """Sealed to collecting: `networks` are those of the runs, the one shard stored after the first."""
        verified = verify_study(paths)
        shard = plan(verified.study.protocol, verified.study.seeds)[0]
        with LedgerWriter.open(paths) as writer:
            for i, network in enumerate(networks):
                body = TestEntriesAgainstThePlan().start(verified, network=network, network_reason="a test")
                writer.append("collection-started", body, "col@example.org")
                if i == 0:
                    store_shard(writer, "coin", verified.seal, shard, "col")
        finish(paths, "col", paths.records)

    def test_it_is_that_of_a_collection_before_it(self, sealed: StudyPaths) -> None:
        self.collect(sealed, ["not-cut", "cut"])
        assert verify_study(sealed).state == "collecting"

    def test_a_collection_after_it_does_not_count(self, sealed: StudyPaths) -> None:
        self.collect(sealed, ["cut", "not-cut"])
        error = fails(sealed, 7, "no collection before this shard")
        assert error.where == "records/main.fair.old/00000.meta.json#/network"


class TestDecisionsAndAudit:
    def decide(self, paths: StudyPaths, **changes: Any) -> None:
        verified = verify_study(paths)
        value = {
            "schema": "prereg/decisions/v1",
            "study": "coin",
            "seal": verified.seal,
            "rules": 1,
            "alpha": 0.05,
            "m": 2,
            "configurations": [],
            "predictions": [],
            **changes,
        }
        data = dump_file(value)
        write_whole(paths.decisions, data)
        append(
            paths, "analysis", {"seal": verified.seal, "decisions_sha256": digest(data)}, "ada@example.org"
        )
        finish(paths, "ada", paths.decisions)

    def audit(self, paths: StudyPaths, who: str = "rex", signer: str = "rex", **changes: Any) -> None:
        ledger = paths.ledger.read_bytes()
        seal_digest = digest(paths.manifest.read_bytes())
        value = {
            "schema": "prereg/audit-report/v1",
            "study": "coin",
            "seal": seal_digest,
            "ledger_head": head_of(ledger),
            "audited_at": "2026-03-02T00:00:00+00:00",
            "auditor": {"rules": 1, "code_sha256": "0" * 64, "python": "3.11"},
            "history": "checked",
            "result": "AGREES",
            "steps": [{"number": 1, "name": "folder", "status": "ok", "applied": 1, "detail": ""}],
            "configurations": [],
            "predictions": [],
            **changes,
        }
        data = dump_file(value)
        signature = signing_key(paths, signer).sign(data, namespace="prereg-audit")
        write_whole(paths.audit_report, data)
        write_whole(paths.audit_signature, signature)
        body = {
            "seal": seal_digest,
            "report_sha256": digest(data),
            "signature_sha256": digest(signature),
            "result": "AGREES",
        }
        now = max(datetime.now(UTC), parse_time(value["audited_at"]))
        append(paths, "audit", body, f"{who}@example.org", now=now)
        finish(paths, who, paths.audit_report, paths.audit_signature)

    def test_decisions_and_audit_verify(self, collected: StudyPaths) -> None:
        self.decide(collected)
        assert verify_study(collected, need="analysed").state == "analysed"
        self.audit(collected)
        assert verify_study(collected, need="audited").state == "audited"
        assert [s.status for s in verify_report(collected)] == ["ok"] * 9
        assert verify_report(collected)[7].applied == 3

    def test_altered_decisions(self, collected: StudyPaths) -> None:
        self.decide(collected)
        replace("analysis/decisions.json", b'"m":2', b'"m":3')(collected)
        assert fails(collected, 8, "not that of ledger entry 12").where == "analysis/decisions.json"
        collected.decisions.unlink()
        assert fails(collected, 8, "missing").where == "analysis/decisions.json"

    @pytest.mark.parametrize(("field", "value"), [("seal", "0" * 64), ("study", "other")])
    def test_decisions_of_another_study(self, collected: StudyPaths, field: str, value: str) -> None:
        self.decide(collected, **{field: value})
        assert fails(collected, 8, "is '").where == f"analysis/decisions.json#/{field}"

    def test_decisions_of_another_schema(self, collected: StudyPaths) -> None:
        self.decide(collected, more=1)
        fails(collected, 8, "Additional properties")

    @pytest.mark.parametrize(
        ("changes", "what"),
        [
            ({"result": "DISAGREES"}, "is 'DISAGREES', not 'AGREES'"),
            ({"seal": "0" * 64}, "is '0"),
            ({"ledger_head": "0" * 64}, "is not the head before"),
            ({"ledger_head": None}, "is not the head before"),
            ({"steps": []}, "steps|should be non-empty|too short"),
        ],
    )
    def test_an_audit_report_that_disagrees(
        self, collected: StudyPaths, changes: dict[str, Any], what: str
    ) -> None:
        self.decide(collected)
        self.audit(collected, **changes)
        fails(collected, 8, what)

    def test_an_audit_of_an_earlier_head(self, collected: StudyPaths) -> None:
        self.decide(collected)
        earlier = line_digests(collected.ledger.read_bytes())[-2]
        self.audit(collected, ledger_head=earlier)
        assert fails(collected, 8, "is not the head before").where == "audit/report.json#/ledger_head"

    def test_an_audit_signed_by_another_key(self, collected: StudyPaths) -> None:
        self.decide(collected)
        self.audit(collected, signer="ada")
        fails(collected, 8, "is not rex@example")

    def test_an_altered_audit(self, collected: StudyPaths) -> None:
        self.decide(collected)
        self.audit(collected)
        for name in ("audit/report.json", "audit/report.json.sig"):
            copy = copy_repository(collected, collected.repository.parent.parent / Path(name).suffix)
            flip(name)(copy)
            assert fails(copy, 8, "not that of ledger entry 13").where == name
            (copy.root / name).unlink()
            assert fails(copy, 8, "missing").where == name


class TestOrder:
    def test_a_seal_that_was_never_committed(self, sealed: StudyPaths) -> None:
        git(sealed.repository, "reset", "-q", "--soft", "HEAD~1")
        git(sealed.repository, "reset", "-q")
        assert fails(sealed, 9, "no commit in the history").where == "seal/manifest.json"

    def test_records_committed_before_the_seal(self, tmp_path: Path) -> None:
        paths = make_study(tmp_path)
        put("records/main.fair.old/00000.jsonl.gz", b"early")(paths)
        git(paths.repository, "add", "studies")
        git(paths.repository, "commit", "-q", "-m", "Peeking")
        git(paths.repository, "rm", "-q", "-r", "studies/coin/records")
        git(paths.repository, "commit", "-q", "-m", "Hiding")
        seal(paths)
        assert fails(paths, 9, "does not come after the seal").where == "records/"

    def test_records_in_the_very_commit_of_the_seal(self, sealed: StudyPaths) -> None:
        put("records/main.fair.old/00000.jsonl.gz", b"early")(sealed)
        git(sealed.repository, "add", "studies")
        git(sealed.repository, "commit", "-q", "--amend", "--no-edit")
        git(sealed.repository, "rm", "-q", "-r", "studies/coin/records")
        git(sealed.repository, "commit", "-q", "-m", "Hiding")
        fails(sealed, 9, "does not come after the seal")

    def test_records_from_a_side_branch_that_was_merged(self, sealed: StudyPaths) -> None:
        git(sealed.repository, "checkout", "-q", "-b", "side", "HEAD~1")
        put("records/main.fair.old/00000.jsonl.gz", b"early")(sealed)
        git(sealed.repository, "add", "studies")
        git(sealed.repository, "commit", "-q", "-m", "Peeking")
        git(sealed.repository, "rm", "-q", "-r", "studies/coin/records")
        git(sealed.repository, "commit", "-q", "-m", "Hiding")
        git(sealed.repository, "checkout", "-q", "main")
        git(sealed.repository, "merge", "-q", "--no-ff", "-m", "Merge", "side")
        fails(sealed, 9, "does not come after the seal")

    def test_a_ledger_that_was_longer(self, collected: StudyPaths) -> None:
        git(collected.repository, "checkout", "-q", "HEAD~1", "--", "studies/coin")
        shutil.rmtree(collected.records)
        error = fails(collected, 9, "a ledger that the present one does not continue")
        assert error.where == "ledger.jsonl"

    def test_a_ledger_that_was_removed_in_between(self, sealed: StudyPaths) -> None:
        data = sealed.ledger.read_bytes()
        git(sealed.repository, "rm", "-q", "studies/coin/ledger.jsonl")
        git(sealed.repository, "commit", "-q", "-m", "x")
        sealed.ledger.write_bytes(data)
        fails(sealed, 9, "does not continue")

    def test_a_shallow_clone_proves_nothing(self, collected: StudyPaths, tmp_path: Path) -> None:
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{collected.repository}", str(tmp_path / "c"))
        fails(StudyPaths(root=tmp_path / "c" / "studies" / "coin"), 9, "shallow")

    def test_a_replaced_seal_commit_is_not_believed(self, sealed: StudyPaths) -> None:
        head = git(sealed.repository, "rev-parse", "HEAD").strip()
        other = git(sealed.repository, "rev-parse", "HEAD~1").strip()
        git(sealed.repository, "replace", head, other)
        assert Repo.find(sealed.root).blob_at(head, sealed.manifest) is not None
        verify_study(sealed, need="sealed")
