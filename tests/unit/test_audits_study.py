"""A whole study audits to AGREES; each way of tampering with it is found, and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from audits_fixture import Builder
from audits_kit import Copy, failed, look, make_keys, on_bytes
from audits_plan import Plan
from audits_tools import pack, public, run, sign

from audits.report import EXIT


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


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def resign(copy: Copy, path: str, key: str, namespace: str) -> None:
    (copy.study / f"{path}.sig").write_bytes(
        sign(copy.keys / key, (copy.study / path).read_bytes(), namespace)
    )


def symlinked(copy: Copy) -> None:
    (copy.study / "NOTES.md").rename(copy.root / "elsewhere")
    (copy.study / "NOTES.md").symlink_to(copy.root / "elsewhere")


def hard_linked(path: str) -> Callable[[Copy], None]:
    return lambda copy: (copy.root / "elsewhere").hardlink_to(copy.study / path)


def rewrapped(data: bytes) -> bytes:
    """The same signature, 76 columns wide."""
    begin, *lines, end, _ = data.split(b"\n")
    text = b"".join(lines)
    return b"\n".join([begin, *(text[i : i + 76] for i in range(0, len(text), 76)), end, b""])


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
    "a sealed file with a second name": (hard_linked("NOTES.md"), 1, "NOTES.md"),
    "a shard with a second name": (hard_linked(f"{SHARD}.jsonl.gz"), 1, f"{SHARD}.jsonl.gz"),
    "the head's signature wrapped wider": (lambda c: c.edit(f"{HEAD}.sig", rewrapped), 6, f"{HEAD}.sig"),
    "the seal's signature wrapped wider": (
        lambda c: c.edit(f"{MANIFEST}.sig", rewrapped), 4, f"{MANIFEST}.sig",
    ),
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
        lambda c: c.drop("seal", LEDGER, HEAD, f"{HEAD}.sig"), 2, MANIFEST,
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


def test_nothing_is_derived_from_a_seal_that_is_not_signed(copy: Copy) -> None:
    resign(copy, MANIFEST, "collector", "prereg-seal")
    outcome = look(copy.study)
    assert [outcome.status(n) for n in (4, 5, 7, 10, 11, 12, 13)] == ["failed", *["not-checked"] * 6]
    assert outcome.configurations == []


def test_one_bad_shard_leaves_the_other_configurations_derived(copy: Copy) -> None:
    copy.drop(f"{SHARD}.jsonl.gz")
    outcome = look(copy.study)
    assert [row["id"] for row in outcome.configurations] == ["control"]
    assert outcome.status(11) == "not-checked"
    assert "probe" in outcome.steps[11].detail()
    assert outcome.status(13) == "not-checked"


def test_report_pages_are_free(copy: Copy) -> None:
    (copy.study / "report").mkdir()
    (copy.study / "report" / "index.html").write_text("<p>")
    (copy.study / "report" / "link").symlink_to("/etc/passwd")
    assert look(copy.study).result == "AGREES"
