"""Sealing for real: what it binds, what it refuses, and that a failure leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from prereg.codec.canonical import digest
from prereg.errors import EvidenceIncomplete, PreregError, UsageError, VerificationFailed, WrongState
from prereg.seal.build import seal_study
from prereg.seal.manifest import read_manifest
from prereg.seal.trust import Untrusted
from prereg.seal.verify import verify_study
from prereg.store.harness import harness_digest
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger
from prereg.store.repo import Repo
from tests.unit.study_fixture import ENVIRONMENTS, SEALED_AT, git, make_study, seal, signing_key


@pytest.fixture
def paths(tmp_path: Path) -> StudyPaths:
    return make_study(tmp_path)


def listing(paths: StudyPaths) -> dict[str, bytes]:
    return {
        str(p.relative_to(paths.root)): p.read_bytes() for p in sorted(paths.root.rglob("*")) if p.is_file()
    }


def edit(paths: StudyPaths, name: str, **changes: Any) -> None:
    value = json.loads((paths.root / name).read_text())
    value.update(changes)
    (paths.root / name).write_text(json.dumps(value))
    git(paths.repository, "add", "studies")
    git(paths.repository, "commit", "-q", "-m", "Edit")


class TestWhatASealIs:
    def test_everything_in_the_folder_is_listed_and_committed(self, paths: StudyPaths) -> None:
        before = git(paths.repository, "rev-parse", "HEAD").strip()
        result = seal(paths)
        manifest = read_manifest(paths.manifest.read_bytes())
        assert result.seal == digest(paths.manifest.read_bytes())
        assert result.manifest == manifest
        assert manifest.commit == before
        assert manifest.environments == ENVIRONMENTS
        assert manifest.author.principal == "ada@example.org"
        listed = {f.path for f in manifest.files}
        unlisted = {f"seal/{n}" for n in ("manifest.json", "manifest.json.sig", "SHA256SUMS")}
        unlisted |= {"ledger.jsonl", "ledger.head.json", "ledger.head.json.sig"}
        assert set(listing(paths)) == listed | unlisted
        assert {
            "coin.py",
            "NOTES.md",
            "code/harness/worker.py",
            "code/schemas/v1/record.schema.json",
        } <= listed
        assert git(paths.repository, "status", "--porcelain") == ""
        assert git(paths.repository, "rev-parse", "HEAD").strip() == result.commit

    def test_the_ledger_the_trailers_and_the_tag_say_the_same(self, paths: StudyPaths) -> None:
        result = seal(paths)
        (entry,) = read_ledger(paths.ledger.read_bytes())
        assert entry.body == {
            "seal": result.seal,
            "signature_sha256": digest(paths.manifest_signature.read_bytes()),
            "commit": result.manifest.commit,
        }
        assert git(paths.repository, "log", "-1", "--format=%s%n%(trailers:only,unfold)").split("\n") == [
            "Seal study coin",
            "Prereg-Study: coin",
            f"Prereg-Seal: {result.seal}",
            f"Prereg-Ledger-Head: {digest(paths.ledger.read_bytes())}",
            "",
            "",
        ]
        tag = Repo.find(paths.root).tag("prereg/coin/sealed")
        assert tag is not None
        assert (tag.name, tag.target) == (result.tag, result.commit)
        assert result.seal in tag.message
        assert result.head in tag.message

    def test_the_same_study_has_the_same_seal(self, tmp_path: Path) -> None:
        one = make_study(tmp_path / "a")
        shutil.copytree(tmp_path / "a", tmp_path / "b", symlinks=True)
        two = StudyPaths(root=tmp_path / "b" / "repo" / "studies" / "coin")
        assert seal(one).seal == seal(two).seal

    def test_files_never_committed_are_committed_by_sealing(self, tmp_path: Path) -> None:
        paths = make_study(tmp_path, commit=False)
        git(paths.repository, "add", "studies/coin/coin.py")
        result = seal(paths)
        assert git(paths.repository, "status", "--porcelain") == ""
        assert result.manifest.commit is not None

    def test_a_repository_without_commits_can_hold_a_seal(self, tmp_path: Path) -> None:
        paths = make_study(tmp_path, commit=False)
        shutil.rmtree(paths.repository / ".git")
        git(paths.repository, "init", "-q")
        result = seal(paths)
        assert result.manifest.commit is None
        assert verify_study(paths, need="sealed").seal == result.seal

    @pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
    def test_sha256sum_and_ssh_keygen_check_it_alone(self, paths: StudyPaths) -> None:
        seal(paths)
        run = subprocess.run(["sha256sum", "--quiet", "-c", "seal/SHA256SUMS"], cwd=paths.root, check=False)
        assert run.returncode == 0
        for name, namespace in (("seal/manifest.json", "prereg-seal"), ("ledger.head.json", "prereg-ledger")):
            done = subprocess.run(
                [
                    *("ssh-keygen", "-Y", "verify", "-f", str(paths.allowed_signers)),
                    *("-I", "ada@example.org", "-n", namespace, "-s", f"{name}.sig"),
                ],
                cwd=paths.root,
                input=(paths.root / name).read_bytes(),
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done

    def test_executable_bits_are_sealed_and_empty_folders_are_not(self, paths: StudyPaths) -> None:
        (paths.root / "coin.py").chmod(0o755)
        git(paths.repository, "commit", "-q", "-a", "-m", "x")
        (paths.root / "repairs" / "deep").mkdir(parents=True)
        (paths.root / "records").mkdir()
        seal(paths)
        modes = {f.path: f.mode for f in read_manifest(paths.manifest.read_bytes()).files}
        assert modes["coin.py"] == "100755"
        assert modes["NOTES.md"] == "100644"
        assert not (paths.root / "repairs").exists()

    def test_line_end_conversion_does_not_touch_what_is_sealed(self, paths: StudyPaths) -> None:
        git(paths.repository, "config", "core.autocrlf", "true")
        (paths.root / "dos.txt").write_bytes(b"a\r\nb\r\n")
        (paths.root / ".gitattributes").write_text("* text=auto\n")
        git(paths.repository, "commit", "-q", "-a", "-m", "x")
        result = seal(paths)
        assert Repo.find(paths.root).blob_at(result.commit, paths.root / "dos.txt") == b"a\r\nb\r\n"


class TestWhatSealingRefuses:
    @pytest.fixture(autouse=True)
    def nothing_is_left(self, paths: StudyPaths) -> Any:
        yield
        assert not paths.manifest.exists() or git(paths.repository, "ls-files", str(paths.manifest))

    def refused(self, paths: StudyPaths, kind: type[PreregError], what: str, who: str = "ada") -> PreregError:
        before = listing(paths)
        head = git(paths.repository, "rev-parse", "HEAD")
        with pytest.raises(kind, match=what) as caught:
            seal(paths, who=who)
        assert listing(paths) == before
        assert git(paths.repository, "rev-parse", "HEAD") == head
        return caught.value

    def test_a_second_seal(self, paths: StudyPaths) -> None:
        seal(paths)
        error = self.refused(paths, WrongState, "the study is sealed")
        assert error.next_step is not None and "prereg status" in error.next_step

    def test_a_removed_seal_whose_tag_is_there(self, paths: StudyPaths) -> None:
        seal(paths)
        git(paths.repository, "rm", "-q", "-r", "studies/coin/code", "studies/coin/seal")
        git(
            paths.repository,
            "rm",
            "-q",
            *(f"studies/coin/ledger.{n}" for n in ("jsonl", "head.json", "head.json.sig")),
        )
        git(paths.repository, "commit", "-q", "-m", "x")
        self.refused(paths, WrongState, "the tag prereg/coin/sealed exists")

    def test_a_seal_that_was_never_committed(self, paths: StudyPaths) -> None:
        paths.seal.mkdir()
        paths.manifest.write_text("{}")
        error = self.refused(paths, WrongState, "interrupted")
        assert error.next_step == f"rm -r {paths.seal}, then prereg seal {paths.root}"
        shutil.rmtree(paths.seal)

    def test_a_modified_tracked_file(self, paths: StudyPaths) -> None:
        (paths.root / "NOTES.md").write_text("changed")
        error = self.refused(paths, WrongState, "differs from what is committed")
        assert error.where == "studies/coin/NOTES.md"
        assert error.next_step is not None and "git commit" in error.next_step

    def test_a_removed_tracked_file(self, paths: StudyPaths) -> None:
        (paths.root / "NOTES.md").unlink()
        self.refused(paths, WrongState, "differs from what is committed")

    @pytest.mark.parametrize("target", ["/etc/hostname", "coin.py", "missing", ".."])
    def test_a_link(self, paths: StudyPaths, target: str) -> None:
        (paths.root / "link").symlink_to(target)
        error = self.refused(paths, UsageError, "is a link")
        assert error.where == "link"

    def test_a_hard_link(self, paths: StudyPaths, tmp_path: Path) -> None:
        (tmp_path / "outside").write_text("x")
        (paths.root / "inside").hardlink_to(tmp_path / "outside")
        self.refused(paths, VerificationFailed, "hard link")

    def test_a_name_that_is_not_text(self, paths: StudyPaths) -> None:
        name = os.fsencode(paths.root) + b"/\xff"
        os.close(os.open(name, os.O_CREAT))
        with pytest.raises(UsageError, match="not UTF-8"):
            seal(paths)
        os.unlink(name)

    def test_a_pipe(self, paths: StudyPaths) -> None:
        os.mkfifo(paths.root / "pipe")
        self.refused(paths, UsageError, "neither a file nor a folder")

    def test_a_submodule(self, paths: StudyPaths) -> None:
        head = git(paths.repository, "rev-parse", "HEAD").strip()
        git(paths.repository, "update-index", "--add", "--cacheinfo", f"160000,{head},studies/coin/sub")
        error = self.refused(paths, UsageError, "is a submodule")
        assert error.where == "studies/coin/sub"

    def test_a_nested_repository(self, paths: StudyPaths) -> None:
        git(paths.root, "init", "-q", "nested")
        self.refused(paths, UsageError, "a repository of its own")

    def test_a_shallow_clone(self, paths: StudyPaths, tmp_path: Path) -> None:
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{paths.repository}", str(clone))
        shallow = StudyPaths(root=clone / "studies" / "coin")
        self.refused(shallow, WrongState, "shallow")

    def test_an_ignored_file(self, paths: StudyPaths) -> None:
        (paths.repository / ".gitignore").write_text("__pycache__/\n")
        (paths.root / "__pycache__").mkdir()
        (paths.root / "__pycache__" / "coin.pyc").write_bytes(b"x")
        self.refused(paths, UsageError, "git ignores")

    @pytest.mark.parametrize(
        "name", ["records/main.fair.old/00000.jsonl.gz", "analysis/decisions.json", "audit/x"]
    )
    def test_evidence_before_the_seal(self, paths: StudyPaths, name: str) -> None:
        (paths.root / name).parent.mkdir(parents=True)
        (paths.root / name).write_text("x")
        self.refused(paths, WrongState, "has no evidence")

    def test_code_that_is_there_already(self, paths: StudyPaths) -> None:
        (paths.root / "code").mkdir()
        (paths.root / "code" / "x.py").write_text("x")
        self.refused(paths, WrongState, "must not exist before")

    def test_a_signer_without_trust_role_or_file(self, paths: StudyPaths) -> None:
        self.refused(paths, Untrusted, "has no role author", who="eve")
        self.refused(paths, Untrusted, "has no role author", who="col")
        self.refused(paths, Untrusted, "has no role author", who="rex")
        with pytest.raises(Untrusted, match="is not ada"):
            seal_study(
                paths, key=signing_key(paths, "eve"), principal="ada@example.org", environments=ENVIRONMENTS
            )
        paths.allowed_signers.unlink()
        self.refused(paths, EvidenceIncomplete, "missing")

    def test_events_of_other_harness_code(self, paths: StudyPaths) -> None:
        rule = {"rule": "channel-S", "threshold": 0.01, "calibration_allowance": 0.01}
        edit(paths, "protocol.json", decision=rule)
        families = json.loads((paths.root / "events.json").read_text())["configurations"]
        for family in families.values():
            family["reference"] = [{"outcome": {"value": v}, "p": 0.5} for v in ("heads", "tails")]
        edit(paths, "events.json", harness_sha256="0" * 64, configurations=families)
        error = self.refused(paths, WrongState, "other harness code")
        assert error.next_step == "prereg events DIR"
        edit(paths, "events.json", harness_sha256=harness_digest())
        seal(paths)

    def test_environments_that_are_not_the_protocols(self, paths: StudyPaths) -> None:
        for environments in ({}, {**ENVIRONMENTS, "more": "0" * 64}):
            with pytest.raises(WrongState, match="the protocol needs"):
                seal_study(
                    paths,
                    key=signing_key(paths),
                    principal="ada@example.org",
                    environments=environments,
                    now=SEALED_AT,
                )

    def test_a_study_of_another_name(self, paths: StudyPaths) -> None:
        renamed = paths.root.with_name("other")
        git(paths.repository, "mv", "studies/coin", "studies/other")
        git(paths.repository, "commit", "-q", "-m", "x")
        self.refused(StudyPaths(root=renamed), UsageError, "the folder is 'other'")

    def test_a_fault_in_a_study_file(self, paths: StudyPaths) -> None:
        edit(paths, "protocol.json", alpha=2)
        error = self.refused(paths, UsageError, "2")
        assert error.where == "protocol.json#/alpha"

    @pytest.mark.parametrize("name", ["A.md", "a\\b", "e\u0301"])
    def test_names_that_other_systems_cannot_hold(self, paths: StudyPaths, name: str) -> None:
        (paths.root / "a.md").write_text("x")
        (paths.root / name).write_text("x")
        self.refused(paths, VerificationFailed, "the path")

    def test_a_name_with_control_characters(self, paths: StudyPaths) -> None:
        (paths.root / "a\tb").write_text("x")
        self.refused(paths, UsageError, "a name with control characters")

    @pytest.mark.parametrize("failing", ["commit", "write"])
    def test_a_failure_on_the_way_leaves_the_study_as_it_was(
        self, paths: StudyPaths, monkeypatch: pytest.MonkeyPatch, failing: str
    ) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise WrongState("no room on the disk")

        if failing == "commit":
            monkeypatch.setattr(Repo, "commit", fail)
        else:
            import prereg.seal.build as build

            real, count = build.write_whole, iter(range(1000))
            monkeypatch.setattr(
                build, "write_whole", lambda p, d: fail() if next(count) == 20 else real(p, d)
            )
        self.refused(paths, WrongState, "no room on the disk")
        monkeypatch.undo()
        seal(paths)

    def test_a_held_index(self, paths: StudyPaths, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("prereg.store.repo._ATTEMPTS", 1)
        lock = paths.repository / ".git" / "index.lock"
        lock.write_text("")
        self.refused(paths, WrongState, r"index\.lock")
        lock.unlink()
        seal(paths)
