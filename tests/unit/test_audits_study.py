"""A whole study audits to AGREES; each way of tampering with it is found, and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from audits_fixture import CRASH, ROOT, A, B, Builder, C, D, Plan, make_key, pack, public, run, sign

from audits.jsonc import parse
from audits.report import EXIT, Outcome, report_bytes
from audits.run import Options, audit
from audits.schema import Schema

Json = dict[str, Any]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit-keys")
    for name in ("author", "reviewer", "collector", "stranger"):
        make_key(folder, name)
    return folder


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    root = tmp_path_factory.mktemp("audit-template") / "repository"
    Builder(root, keys, Plan()).build()
    return root


@dataclass
class Copy:
    """A copy of the template to tamper with."""

    root: Path
    keys: Path

    @property
    def study(self) -> Path:
        return self.root / "studies" / "tiny"

    def edit(self, path: str, change: Callable[[bytes], bytes]) -> None:
        target = self.study / path
        before = target.read_bytes()
        after = change(before)
        assert after != before, "the tampering changed nothing"
        target.write_bytes(after)

    def drop(self, path: str) -> None:
        target = self.study / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()


@pytest.fixture
def copy(template: Path, keys: Path, tmp_path: Path) -> Copy:
    shutil.copytree(template, tmp_path / "r", symlinks=True)
    return Copy(tmp_path / "r", keys)


def look(study: Path, **options: Any) -> Outcome:
    trust = study.parent.parent / "trust"
    given = {"signers": trust / "allowed_signers", "roles": trust / "roles.json", "studies": study.parent}
    outcome = audit(Options(study=study, **(given | options)))
    schema = Schema(parse((ROOT / "schemas/v1/audit-report.schema.json").read_bytes()))
    value = parse(report_bytes(outcome.value()))
    assert schema.first_wrong(value) is None, schema.first_wrong(value)
    assert [step["number"] for step in value["steps"]] == list(range(1, 14))
    return outcome


def failed(outcome: Outcome) -> dict[int, str]:
    return {n: found.detail() for n, found in outcome.steps.items() if outcome.status(n) == "failed"}


def test_the_untouched_study_agrees(template: Path) -> None:
    outcome = look(template / "studies" / "tiny")
    assert failed(outcome) == {}
    assert outcome.result == "AGREES"
    assert outcome.history == "checked"
    assert all(outcome.status(n) == "ok" and outcome.steps[n].applied for n in range(1, 14))
    assert [(row["id"], row["verdict"], row["agrees"]) for row in outcome.configurations] == [
        ("control", "NOT_REJECTED", True),
        ("probe", "FAILS", True),
    ]
    assert [row["status"] for row in outcome.predictions] == ["HELD", "HELD"]
    assert outcome.steps[7].applied == 160


def on_bytes(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new, 1)


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def resign(copy: Copy, path: str, key: str, namespace: str) -> None:
    (copy.study / f"{path}.sig").write_bytes(
        sign(copy.keys / key, (copy.study / path).read_bytes(), namespace)
    )


def symlinked(copy: Copy) -> None:
    (copy.study / "NOTES.md").rename(copy.root / "elsewhere")
    (copy.study / "NOTES.md").symlink_to(copy.root / "elsewhere")


def bent_gzip(data: bytes) -> bytes:
    return data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]


SHARD = "records/main.probe.on/00001"
CODE = "code/harness/run.py"
MANIFEST = "seal/manifest.json"
LEDGER = "ledger.jsonl"
HEAD = "ledger.head.json"
TAMPERED: dict[str, tuple[Callable[[Copy], object], int, str]] = {
    "a space in the protocol": (lambda c: c.edit("protocol.json", lambda d: d + b" "), 3, "protocol.json"),
    "an event's probability": (lambda c: c.edit("events.json", on_bytes(b"0.5", b"0.4")), 3, "events.json"),
    "a prediction": (
        lambda c: c.edit("predictions.json", on_bytes(b"FAILS", b"VOID")), 3, "predictions.json",
    ),
    "CRLF in the notes": (lambda c: c.edit("NOTES.md", on_bytes(b"\n", b"\r\n")), 3, "NOTES.md"),
    "the collector's code": (lambda c: c.edit(CODE, lambda d: d + b"#"), 3, CODE),
    "a sealed file's mode": (lambda c: (c.study / CODE).chmod(0o644), 3, CODE),
    "a sealed file removed": (lambda c: c.drop("NOTES.md"), 3, "NOTES.md"),
    "a sealed file moved into a link": (symlinked, 1, "NOTES.md"),
    "a file added": (lambda c: (c.study / "extra.txt").write_text("x"), 1, "extra.txt"),
    "a file added to the code": (lambda c: (c.study / "code/x.pyc").write_text("x"), 3, "code/x.pyc"),
    "an empty folder added": (lambda c: (c.study / "empty").mkdir(), 1, "empty"),
    "a pipe": (lambda c: run("mkfifo", str(c.study / "pipe")), 1, "pipe"),
    "a digest in the manifest": (
        lambda c: c.edit(MANIFEST, on_bytes(b'"sha256":"', b'"sha256":"0')), 2, MANIFEST,
    ),
    "the study's name in the manifest": (
        lambda c: c.edit(MANIFEST, on_bytes(b'"study":"tiny"', b'"study":"tidy"')),
        4, f"{MANIFEST}.sig",
    ),
    "the manifest laid out": (
        lambda c: c.edit(MANIFEST, lambda d: json.dumps(json.loads(d), indent=1).encode()),
        2, MANIFEST,
    ),
    "the manifest removed": (lambda c: c.drop(MANIFEST), 2, MANIFEST),
    "SHA256SUMS": (lambda c: c.edit("seal/SHA256SUMS", lambda d: d[1:]), 3, "seal/SHA256SUMS"),
    "SHA256SUMS removed": (lambda c: c.drop("seal/SHA256SUMS"), 3, "seal/SHA256SUMS"),
    "the seal signed by the collector": (
        lambda c: resign(c, MANIFEST, "collector", "prereg-seal"), 4, f"{MANIFEST}.sig",
    ),
    "the seal signed in another namespace": (
        lambda c: resign(c, MANIFEST, "author", "prereg-ledger"), 4, f"{MANIFEST}.sig",
    ),
    "the seal's signature removed": (lambda c: c.drop(f"{MANIFEST}.sig"), 4, f"{MANIFEST}.sig"),
    "the author's key not allowed": (
        lambda c: (c.root / "trust/allowed_signers").write_text(
            f"ann@example.org {public(c.keys / 'stranger')}"
        ),
        4, f"{MANIFEST}.sig",
    ),
    "the author's role taken": (
        lambda c: (c.root / "trust/roles.json").write_text(
            '{"schema":"prereg/roles/v1","roles":{"ann@example.org":["collector"]}}'
        ),
        4, f"{MANIFEST}.sig",
    ),
    "no roles": (lambda c: (c.root / "trust/roles.json").unlink(), 4, "trust/roles.json"),
    "an author's key for the reviewer": (
        lambda c: (c.root / "trust/allowed_signers").write_text(
            f"ann@example.org,rev@example.org {public(c.keys / 'author')}"
        ),
        4, "allowed_signers",
    ),
    "the ledger removed": (lambda c: c.drop(LEDGER), 6, LEDGER),
    "the ledger's last line dropped": (
        lambda c: c.edit(LEDGER, lines(lambda all_: all_[:-1])), 6, HEAD,
    ),
    "a ledger line dropped": (
        lambda c: c.edit(LEDGER, lines(lambda all_: all_[:4] + all_[5:])), 6, "ledger.jsonl line 5",
    ),
    "ledger lines swapped": (
        lambda c: c.edit(LEDGER, lines(lambda a: [*a[:3], a[4], a[3], *a[5:]])), 6, "ledger.jsonl line 4",
    ),
    "a ledger time": (
        lambda c: c.edit(LEDGER, on_bytes(b"T10:00:05", b"T10:00:01")), 6, "ledger.jsonl line 3",
    ),
    "a ledger body": (
        lambda c: c.edit(LEDGER, on_bytes(b'"draws":16', b'"draws":17')), 6, "ledger.jsonl line 3",
    ),
    "the ledger's line ends": (
        lambda c: c.edit(LEDGER, lambda d: d.replace(b"\n", b"\r\n")), 6, "ledger.jsonl line 1",
    ),
    "the ledger cut in a line": (lambda c: c.edit(LEDGER, lambda d: d[:-1]), 6, LEDGER),
    "the head's number": (lambda c: c.edit(HEAD, on_bytes(b'"seq":1', b'"seq":2')), 6, "ledger.head"),
    "the head signed by the author": (
        lambda c: resign(c, HEAD, "author", "prereg-ledger"), 6, f"{HEAD}.sig",
    ),
    "the head removed": (lambda c: c.drop(HEAD), 6, HEAD),
    "a byte of a shard": (lambda c: c.edit(f"{SHARD}.jsonl.gz", bent_gzip), 7, f"{SHARD}.jsonl.gz"),
    "a shard packed again": (
        lambda c: c.edit(f"{SHARD}.jsonl.gz", lambda d: pack(b"{}\n")), 7, f"{SHARD}.jsonl.gz",
    ),
    "a shard removed": (lambda c: c.drop(f"{SHARD}.jsonl.gz"), 7, f"{SHARD}.jsonl.gz"),
    "a meta removed": (lambda c: c.drop(f"{SHARD}.meta.json"), 7, f"{SHARD}.meta.json"),
    "a meta's network": (
        lambda c: c.edit(f"{SHARD}.meta.json", on_bytes(b'"cut"', b'"not-cut"')), 7, f"{SHARD}.meta.json",
    ),
    "a shard added": (
        lambda c: shutil.copy(
            c.study / f"{SHARD}.jsonl.gz", c.study / "records/main.probe.on/00003.jsonl.gz"
        ),
        7, "records/main.probe.on/00003.jsonl.gz",
    ),
    "two shards swapped": (
        lambda c: [
            (c.study / f"{SHARD}.jsonl.gz").rename(c.study / "x"),
            (c.study / "records/main.probe.on/00000.jsonl.gz").rename(c.study / f"{SHARD}.jsonl.gz"),
            (c.study / "x").rename(c.study / "records/main.probe.on/00000.jsonl.gz"),
        ],
        7, f"{SHARD}.jsonl.gz",
    ),
    "a temporary file left among the records": (
        lambda c: (c.study / f"{SHARD}.jsonl.gz.tmp").write_text("x"), 1, f"{SHARD}.jsonl.gz.tmp",
    ),
    "all records removed": (lambda c: c.drop("records"), 7, "records/main.control.off/00000.meta.json"),
    "the decisions edited": (
        lambda c: c.edit("analysis/decisions.json", on_bytes(b"NOT_REJECTED", b"INCONCLUSIVE")),
        8, "analysis/decisions.json",
    ),
    "the decisions removed": (lambda c: c.drop("analysis/decisions.json"), 8, "analysis/decisions.json"),
    "the audit's report edited": (
        lambda c: c.edit("audit/report.json", on_bytes(b"AGREES", b"FAILED")), 8, "audit/report.json",
    ),
    "the audit's report removed": (lambda c: c.drop("audit/report.json"), 8, "audit/report.json"),
    "the audit signed by the author": (
        lambda c: resign(c, "audit/report.json", "author", "prereg-audit"), 8, "audit/report.json.sig",
    ),
    "the seal and the ledger removed": (
        lambda c: [c.drop(path) for path in ("seal", LEDGER, HEAD, f"{HEAD}.sig")],
        2, MANIFEST,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
@pytest.mark.parametrize("waived", [False, True], ids=["history", "waived"])
def test_tampering_is_found_and_named(copy: Copy, name: str, waived: bool) -> None:
    tamper, step, file = TAMPERED[name]
    tamper(copy)
    outcome = look(copy.study, without_history=waived)
    assert outcome.result == "FAILED"
    assert EXIT[outcome.result] == 1
    found = failed(outcome)
    assert step in found, found
    assert file in found[step], found


def test_crlf_is_named_as_such(copy: Copy) -> None:
    copy.edit("NOTES.md", on_bytes(b"\n", b"\r\n"))
    assert "CRLF" in failed(look(copy.study))[3]


def test_nothing_is_used_that_was_not_authenticated(copy: Copy) -> None:
    copy.edit("events.json", on_bytes(b"0.5", b"0.4"))
    outcome = look(copy.study)
    assert [outcome.status(n) for n in (5, 7, 10, 11, 12, 13)] == ["failed", *["not-checked"] * 5]
    assert [outcome.status(n) for n in (4, 6, 8, 9)] == ["ok"] * 4
    assert "step 5" in outcome.steps[11].detail()


def test_one_bad_shard_leaves_the_other_configurations_derived(copy: Copy) -> None:
    copy.drop(f"{SHARD}.jsonl.gz")
    outcome = look(copy.study)
    assert [row["id"] for row in outcome.configurations] == ["control"]
    assert outcome.status(11) == "not-checked"
    assert "probe" in outcome.steps[11].detail()


def test_report_pages_are_free(copy: Copy) -> None:
    (copy.study / "report").mkdir()
    (copy.study / "report" / "index.html").write_text("<p>")
    (copy.study / "report" / "link").symlink_to("/etc/passwd")
    assert look(copy.study).result == "AGREES"


# History.


def commit(copy: Copy) -> None:
    run("git", "add", "-A", cwd=copy.root)
    run("git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x", cwd=copy.root)


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
    run("git", "rm", "-rq", "--cached", f"studies/tiny/{SHARD}.jsonl.gz", cwd=copy.root)
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


HISTORY: dict[str, tuple[Callable[[Copy], None], str]] = {
    "one commit holds it all": (_rewritten, "manifest.json"),
    "a shallow clone": (_shallow, "shallow"),
    "grafts": (_grafted, "grafts"),
    "a ledger that was another": (_ledger_went_back, LEDGER),
    "a ledger that was away": (_ledger_removed_and_back, "removes it"),
    "HEAD has other notes": (_head_differs, "NOTES.md"),
    "a shard not committed": (_records_not_committed, f"{SHARD}.jsonl.gz"),
    "the seal is not in HEAD's history": (_seal_in_no_commit, MANIFEST),
    "the seal was added twice": (_sealed_again, MANIFEST),
    "records before the seal": (_records_on_an_older_branch, "records/"),
}


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


def test_the_seal_in_one_commit_with_records(tmp_path: Path, keys: Path) -> None:
    study = Builder(tmp_path / "r", keys, Plan(no_seal_commit=True)).build()
    found = failed(look(study))
    assert list(found) == [9]
    assert "records/" in found[9]


# States.


@pytest.mark.parametrize(
    ("upto", "says"), [("sealed", "prereg collect"), ("collected", "prereg analyse"), ("analysed", "")]
)
def test_every_state(tmp_path: Path, keys: Path, upto: str, says: str) -> None:
    outcome = look(Builder(tmp_path / "r", keys, Plan(upto=upto)).build())
    assert failed(outcome) == {}
    assert outcome.result == ("INCOMPLETE" if says else "AGREES")
    assert says in " ".join(outcome.incomplete)
    if upto == "collected":
        assert [(row["verdict"], row["claimed"], row["agrees"]) for row in outcome.configurations] == [
            ("NOT_REJECTED", None, False), ("FAILS", None, False),
        ]  # fmt: skip


def test_a_draft(copy: Copy) -> None:
    for path in (
        "seal",
        LEDGER,
        HEAD,
        f"{HEAD}.sig",
        "records",
        "analysis",
        "audit",
    ):
        copy.drop(path)
    outcome = look(copy.study)
    assert failed(outcome) == {}
    assert outcome.result == "INCOMPLETE"
    assert "prereg seal" in outcome.incomplete[0]


def test_decisions_the_ledger_does_not_know(tmp_path: Path, keys: Path, copy: Copy) -> None:
    study = Builder(tmp_path / "q", keys, Plan(upto="collected")).build()
    shutil.copytree(copy.study / "analysis", study / "analysis")
    assert "analysis/decisions.json" in failed(look(study))[8]


def test_an_incomplete_collection(tmp_path: Path, keys: Path) -> None:
    plan = Plan(upto="collected", left_out=("main.probe.on",))
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert failed(outcome) == {}
    assert outcome.result == "INCOMPLETE"
    assert outcome.steps[7].applied == 120


# Verdicts, against the fixture's slow twin.


VERDICTS: dict[str, tuple[Plan, list[str]]] = {
    "no witness": (Plan(on=lambda c, j: [A, B, A, C][j % 4]), ["NOT_REJECTED", "NOT_REJECTED"]),
    "crashes": (Plan(on=lambda c, j: CRASH if j % 4 == 3 else [A, B, A, C][j % 4]), ["NOT_REJECTED"] * 2),
    "many crashes": (Plan(on=lambda c, j: CRASH), ["FAILS", "FAILS"]),
    "the off arm violates": (
        Plan(off=lambda c, j: D if c == "probe" and j == 7 else [A, B, A, C][j % 4]),
        ["NOT_REJECTED", "VOID"],
    ),
    "the off arm is not P": (Plan(off=lambda c, j: B, on=lambda c, j: B), ["VOID", "VOID"]),
    "nothing proposed": (Plan(proposals=lambda c: 3 * (c == "probe")), ["INCONCLUSIVE", "FAILS"]),
    "a unit lost": (Plan(invalid=("main.probe.on",)), ["NOT_REJECTED", "INVALID"]),
    "an off arm lost": (Plan(invalid=("main.control.off",)), ["INVALID", "FAILS"]),
    "missing and bounded": (Plan(left_out=("main.probe.off",), missing="bound"), ["NOT_REJECTED", "INVALID"]),
    "without an oracle": (
        Plan(
            rule="event-gap", law=None, allowance=None,
            events=[
                {"id": "one", "kind": "value", "equals": 1},
                {"id": "half", "kind": "at-least", "value": 0.5},
                {"id": "crash", "kind": "crash"},
            ],
            off=lambda c, j: {"value": j % 2},
            on=lambda c, j: {"value": 1.5 if c == "probe" else j % 2},
            predictions=[
                {
                    "id": "p", "statement": "x",
                    "claim": {"kind": "verdict", "configuration": "probe", "in": ["DIFFERS"]},
                }
            ],
        ),
        ["NOT_REJECTED", "DIFFERS"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_of_whole_studies(tmp_path: Path, keys: Path, name: str) -> None:
    plan, verdicts = VERDICTS[name]
    outcome = look(Builder(tmp_path / "r", keys, plan).build())
    assert failed(outcome) == {}
    assert [row["verdict"] for row in outcome.configurations] == verdicts
    assert outcome.result == "AGREES"
