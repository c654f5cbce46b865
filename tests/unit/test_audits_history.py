"""The order of a study by its git history, and the states it may be audited in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import Builder
from audits_kit import Copy, commit, failed, look, make_keys
from audits_plan import Plan
from audits_tools import run

from audits import history, repo
from audits.fault import Fault
from audits.repo import Repository

SHARD = "records/main.probe.on/00001"
MANIFEST = "seal/manifest.json"
LEDGER = "ledger.jsonl"
HEAD = "ledger.head.json"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("audit-keys"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    root = tmp_path_factory.mktemp("audit-template") / "repository"
    Builder(root, keys, Plan()).build()
    return root


@pytest.fixture
def copy(template: Path, keys: Path, tmp_path: Path) -> Copy:
    shutil.copytree(template, tmp_path / "r", symlinks=True)
    return Copy(tmp_path / "r", keys)


def test_without_a_repository_the_audit_is_incomplete_unless_waived(copy: Copy) -> None:
    shutil.rmtree(copy.root / ".git")
    outcome = look(copy.study)
    assert (outcome.result, outcome.history, outcome.status(9)) == ("INCOMPLETE", "missing", "not-checked")
    assert "--without-history" in outcome.incomplete[0]
    outcome = look(copy.study, without_history=True)
    assert (outcome.result, outcome.history, outcome.status(9)) == ("AGREES", "waived", "not-checked")


def test_a_repository_without_commits_is_no_history(copy: Copy) -> None:
    shutil.rmtree(copy.root / ".git")
    run("git", "init", "-q", cwd=copy.root)
    assert look(copy.study).result == "INCOMPLETE"


def _rewritten(copy: Copy) -> None:
    shutil.rmtree(copy.root / ".git")
    run("git", "init", "-q", cwd=copy.root)
    commit(copy)


def _shallow(copy: Copy) -> None:
    run("git", "clone", "-q", "--depth", "1", f"file://{copy.root}", str(copy.root) + "2")
    shutil.rmtree(copy.root)
    Path(str(copy.root) + "2").rename(copy.root)


def _grafted(copy: Copy) -> None:
    (copy.root / ".git/info").mkdir(exist_ok=True)
    (copy.root / ".git/info/grafts").write_text("")


def _ledger_went_back(copy: Copy) -> None:
    whole = (copy.study / LEDGER).read_bytes()
    copy.edit(LEDGER, lambda data: data.replace(b"10:00:05", b"10:00:02"))
    commit(copy)
    (copy.study / LEDGER).write_bytes(whole)
    commit(copy)


def _ledger_removed_and_back(copy: Copy) -> None:
    whole = (copy.study / LEDGER).read_bytes()
    copy.drop(LEDGER)
    commit(copy)
    (copy.study / LEDGER).write_bytes(whole)
    commit(copy)


def _head_differs(copy: Copy) -> None:
    whole = (copy.study / "NOTES.md").read_bytes()
    copy.edit("NOTES.md", lambda data: data + b"x")
    commit(copy)
    (copy.study / "NOTES.md").write_bytes(whole)


def _records_not_committed(copy: Copy) -> None:
    _not_in_head(copy, f"{SHARD}.jsonl.gz")


def _not_in_head(copy: Copy, *paths: str) -> None:
    run("git", "rm", "-rq", "--cached", *(f"studies/tiny/{path}" for path in paths), cwd=copy.root)
    run("git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x", cwd=copy.root)


def _seal_in_no_commit(copy: Copy) -> None:
    run("git", "checkout", "-q", "--orphan", "other", cwd=copy.root)
    run("git", "rm", "-rq", "--cached", "studies", cwd=copy.root)
    run("git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x", cwd=copy.root)


def _sealed_again(copy: Copy) -> None:
    whole = (copy.study / MANIFEST).read_bytes()
    copy.drop(MANIFEST)
    commit(copy)
    (copy.study / MANIFEST).write_bytes(whole)
    commit(copy)


def _records_on_an_older_branch(copy: Copy) -> None:
    """Records were there on a branch from before the seal, and that branch was merged."""
    base = run("git", "rev-list", "--max-parents=0", "HEAD", cwd=copy.root).decode().strip()
    run("git", "checkout", "-q", "-b", "early", base, cwd=copy.root)
    (copy.study / "records").mkdir(parents=True)
    (copy.study / "records/peek").write_text("x")
    commit(copy)
    (copy.study / "records/peek").unlink()
    commit(copy)
    run("git", "checkout", "-q", "main", cwd=copy.root)
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    run("git", *identity, "merge", "-q", "--no-edit", "early", cwd=copy.root)


def _promisor(copy: Copy) -> None:
    run("git", "config", "remote.origin.promisor", "true", cwd=copy.root)


def _partial(copy: Copy) -> None:
    run("git", "config", "core.repositoryFormatVersion", "1", cwd=copy.root)
    run("git", "config", "extensions.partialClone", "origin", cwd=copy.root)


HISTORY: dict[str, tuple[Callable[[Copy], None], str]] = {
    "one commit holds it all": (_rewritten, "manifest.json"),
    "a shallow clone": (_shallow, "shallow"),
    "grafts": (_grafted, "grafts"),
    "a promisor": (_promisor, "remote.origin.promisor"),
    "a partial clone": (_partial, "extensions.partialclone"),
    "a ledger that was another": (_ledger_went_back, LEDGER),
    "a ledger that was away": (_ledger_removed_and_back, "removes it"),
    "HEAD has other notes": (_head_differs, "NOTES.md"),
    "a shard not committed": (_records_not_committed, f"{SHARD}.jsonl.gz"),
    "the seal is not in HEAD's history": (_seal_in_no_commit, MANIFEST),
    "the seal was added twice": (_sealed_again, MANIFEST),
    "records before the seal": (_records_on_an_older_branch, "records/"),
}


def test_a_ledger_from_before_the_seal(tmp_path: Path, keys: Path) -> None:
    """It is in the commit of the seal, which does not touch it, and it is not how the present one begins."""

    class Early(Builder):
        def seal(self) -> None:
            self.write(LEDGER, b"{}\n")
            self.commit("early")
            super().seal()

        def commit(self, message: str) -> None:
            if message == "seal":
                whole = (self.folder / LEDGER).read_bytes()
                self.write(LEDGER, b"{}\n")
                super().commit(message)
                self.write(LEDGER, whole)
            else:
                super().commit(message)

    found = failed(look(Early(tmp_path / "r", keys, Plan()).build()))
    assert list(found) == [9]
    assert "has one that is not a prefix of it" in found[9]


def _behind(copy: Copy) -> None:
    """The last verb has written its entry, report and head, and was cut off before it committed."""
    run("git", "reset", "-q", "HEAD~1", cwd=copy.root)


def test_what_a_verb_has_not_committed_yet(copy: Copy) -> None:
    _behind(copy)
    assert run("git", "status", "--porcelain", "studies/tiny/audit", cwd=copy.root)
    assert look(copy.study).result == "AGREES"


def test_the_records_of_a_collection_that_was_cut_off(tmp_path: Path, keys: Path) -> None:
    study = Builder(tmp_path / "r", keys, Plan(upto="collected")).build()
    copy = Copy(tmp_path / "r", keys)
    run("git", "reset", "-q", "HEAD~1", cwd=copy.root)
    assert run("git", "status", "--porcelain", "studies/tiny/records", cwd=copy.root)
    assert failed(look(study)) == {}


BEHIND: dict[str, tuple[Callable[[Copy], object], str]] = {
    "a sealed file": (lambda c: _not_in_head(c, "NOTES.md"), "NOTES.md: is not committed"),
    "a file of the seal": (lambda c: _not_in_head(c, "seal/SHA256SUMS"), "seal/SHA256SUMS: is not committed"),
    "the head": (lambda c: _not_in_head(c, HEAD, f"{HEAD}.sig"), f"{HEAD}: is not committed"),
    "other records": (
        lambda c: _other_in_head(c, f"{SHARD}.jsonl.gz"), f"{SHARD}.jsonl.gz: HEAD has other bytes",
    ),
    "records of more": (lambda c: _other_in_head(c, "records/x"), "records/x: is in HEAD, but not in"),
    "the ledger": (lambda c: _other_in_head(c, LEDGER), f"{LEDGER}: HEAD has one that is not a prefix"),
}  # fmt: skip


def _other_in_head(copy: Copy, path: str) -> None:
    """HEAD has a file that is not, or is another, in the folder."""
    target = copy.study / path
    whole = target.read_bytes() if target.exists() else None
    target.write_bytes(b"x\n")
    run("git", "add", "-f", str(target), cwd=copy.root)
    run("git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x", cwd=copy.root)
    target.unlink() if whole is None else target.write_bytes(whole)


@pytest.mark.parametrize("name", BEHIND)
def test_a_ledger_that_grew_excuses_nothing_else(copy: Copy, name: str) -> None:
    _behind(copy)
    tamper, says = BEHIND[name]
    tamper(copy)
    found = failed(look(copy.study))
    assert list(found) == [9]
    assert says in found[9]


@pytest.mark.parametrize("name", HISTORY)
def test_a_history_that_does_not_hold(copy: Copy, name: str) -> None:
    tamper, says = HISTORY[name]
    tamper(copy)
    outcome = look(copy.study)
    found = failed(outcome)
    assert list(found) == [9], found
    assert says in found[9]
    assert (outcome.result, outcome.history) == ("FAILED", "checked")
    assert look(copy.study, without_history=True).result == "AGREES"


def test_what_git_holds_is_no_longer_than_a_file_may_be(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before it is read; and files of HEAD are not all held at once."""
    held: list[int] = []
    real = repo.Repository.blobs

    def blobs(self: Repository, names: Iterable[str]) -> dict[str, bytes]:
        found = real(self, names)
        held.append(sum(map(len, found.values())))
        return found

    longest = max(path.stat().st_size for path in copy.study.rglob("*") if path.is_file())
    monkeypatch.setattr(repo.Repository, "blobs", blobs)
    monkeypatch.setattr(repo, "LARGE", longest)
    assert look(copy.study).result == "AGREES"
    whole = sum(path.stat().st_size for path in copy.study.rglob("*") if path.is_file())
    assert max(held) <= longest < whole
    monkeypatch.setattr(repo, "LARGE", longest - 1)
    found = failed(look(copy.study))
    assert list(found) == [9]
    assert f"is larger than the {longest - 1} bytes it may have" in found[9]


def test_a_merge_keeps_the_order(copy: Copy) -> None:
    base = run("git", "rev-list", "--max-parents=0", "HEAD", cwd=copy.root).decode().strip()
    run("git", "checkout", "-q", "-b", "side", base, cwd=copy.root)
    (copy.root / "other.txt").write_text("x")
    commit(copy)
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    run("git", *identity, "merge", "-q", "--no-edit", "--no-ff", "main", cwd=copy.root)
    outcome = look(copy.study)
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"


def test_a_replaced_commit_is_not_believed(copy: Copy) -> None:
    """`git replace` and the environment cannot show the auditor another history."""
    commits = run("git", "rev-list", "--reverse", "HEAD", cwd=copy.root).decode().split()
    run("git", "replace", commits[2], commits[0], cwd=copy.root)
    assert look(copy.study).result == "AGREES"


def test_git_runs_no_transport_and_fetches_nothing(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """What git would run to fetch, whatever the settings and the version of git."""
    mark = copy.root.parent / "ran"
    for name, value in {
        "remote.origin.url": f"ext::touch {mark}",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "protocol.file.allow": "always",
    }.items():
        run("git", "config", name, value, cwd=copy.root)
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file")
    repository = Repository(copy.study)
    for where in ("origin", f"file://{copy.root}", str(copy.root)):
        with pytest.raises(Fault, match="not allowed"):
            repository._git("fetch", where)
    assert not mark.exists()
    seen: list[dict[str, str]] = []
    real = subprocess.run

    def watch(*arguments: Any, **options: Any) -> Any:
        seen.append(options["env"])
        assert arguments[0][0] == "git"
        for setting in ("protocol.allow", "protocol.ext.allow", "protocol.file.allow"):
            assert f"{setting}=never" in arguments[0]
        return real(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", watch)
    assert look(copy.study).result == "AGREES"
    assert seen
    assert all((env["GIT_ALLOW_PROTOCOL"], env["GIT_NO_LAZY_FETCH"]) == ("none", "1") for env in seen)


def test_the_seal_in_one_commit_with_records(tmp_path: Path, keys: Path) -> None:
    study = Builder(tmp_path / "r", keys, Plan(no_seal_commit=True)).build()
    found = failed(look(study))
    assert list(found) == [9]
    assert "records/" in found[9]


def _other_mode(copy: Copy) -> None:
    (copy.study / MANIFEST).chmod(0o755)
    commit(copy)


def _other_mode_and_back(copy: Copy) -> None:
    _other_mode(copy)
    (copy.study / MANIFEST).chmod(0o644)
    commit(copy)


def _merged_with_other_mode(copy: Copy) -> None:
    """Each side of the merge has the bytes, with another mode than the merge."""
    run("git", "checkout", "-q", "-b", "side", cwd=copy.root)
    (copy.root / "other.txt").write_text("x")
    commit(copy)
    run("git", "checkout", "-q", "main", cwd=copy.root)
    identity = ("-c", "user.name=x", "-c", "user.email=x@y")
    run("git", *identity, "merge", "-q", "--no-edit", "--no-ff", "side", cwd=copy.root)
    (copy.study / MANIFEST).chmod(0o755)
    run("git", "add", "-A", cwd=copy.root)
    run("git", *identity, "commit", "-q", "--amend", "--no-edit", cwd=copy.root)


@pytest.mark.parametrize("change", [_other_mode, _other_mode_and_back, _merged_with_other_mode])
def test_a_manifest_of_another_mode_is_not_added_again(copy: Copy, change: Callable[[Copy], None]) -> None:
    """The commit's parents have those bytes already."""
    sealed = (
        run("git", "log", "--format=%H", "--", f"studies/tiny/{MANIFEST}", cwd=copy.root).decode().strip()
    )
    change(copy)
    outcome = look(copy.study)
    assert failed(outcome) == {}
    assert f"sealed by commit {sealed}" in outcome.steps[9].detail()


def test_what_of_a_seal_may_wait_for_its_commit() -> None:
    line = b'{"body":{"seal":"ab"},"type":"timestamped"}\n'
    assert history._late(line, "ab", behind=False) == ()
    assert history._late(line, "cd", behind=False) == ("seal/timestamp.",)
    assert history._late(line, "ab", behind=True) == ("seal/cosign/", "seal/timestamp.")
