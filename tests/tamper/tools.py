"""How faults are committed: byte by byte, or with every digest recomputed by somebody without the keys."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rfc8785


def flip(path: Path, at: int) -> None:
    """Change one byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def first_shard(study: Path) -> Path:
    """The first shard of the first unit."""
    return sorted((study / "records").glob("*/00000.jsonl.gz"))[0]


def edit_gz(path: Path, old: bytes, new: bytes) -> None:
    """Replace the first occurrence inside a shard and pack it again, deterministically."""
    lines = gzip.decompress(path.read_bytes())
    assert old in lines
    path.write_bytes(gzip.compress(lines.replace(old, new, 1), 6, mtime=0))


def rewrite_shard(study: Path) -> None:
    """Change a record and recompute the meta, as somebody would who can write but not sign."""
    path = first_shard(study)
    edit_gz(path, b'"heads"', b'"tails"')
    meta_path = path.with_name("00000.meta.json")
    meta = json.loads(meta_path.read_bytes())
    lines = gzip.decompress(path.read_bytes())
    meta |= {
        "records_sha256": sha(path.read_bytes()),
        "records_size": path.stat().st_size,
        "lines_sha256": sha(lines),
        "lines_size": len(lines),
    }
    meta_path.write_bytes(rfc8785.dumps(meta) + b"\n")


def tree_of(study: Path) -> Path:
    """The tree of the on arm whose law departs."""
    return study / "records" / "walked.other.on" / "00000.jsonl.gz"


def rewrite_tree(
    study: Path,
    leaves: Callable[[list[Any]], Any] = lambda found: None,
    tree: Callable[[dict[str, Any]], Any] = lambda found: None,
) -> None:
    """Change leaves and `tree` of the meta in place, number them anew, and recompute the meta's digests."""
    path = tree_of(study)
    found = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    leaves(found)
    for number, leaf in enumerate(found):
        leaf["leaf"] = number
    lines = b"".join(rfc8785.dumps(leaf) + b"\n" for leaf in found)
    packed = gzip.compress(lines, 6, mtime=0)
    path.write_bytes(packed)
    meta_path = path.with_name("00000.meta.json")
    meta = json.loads(meta_path.read_bytes())
    tree(meta["tree"])
    meta |= {
        "draws": len(found),
        "records_sha256": sha(packed),
        "records_size": len(packed),
        "lines_sha256": sha(lines),
        "lines_size": len(lines),
    }
    meta_path.write_bytes(rfc8785.dumps(meta) + b"\n")


def relink(study: Path) -> None:
    """Enter the tree's files in the ledger as they are, and chain it anew; only signatures are missing."""
    path, out = tree_of(study), []
    meta = path.with_name("00000.meta.json").read_bytes()
    for line in ledger(study):
        entry: dict[str, Any] = json.loads(line)
        if entry["type"] == "shard-stored" and entry["body"]["unit"] == path.parent.name:
            entry["body"] |= {
                "records_sha256": sha(path.read_bytes()),
                "records_size": path.stat().st_size,
                "meta_sha256": sha(meta),
                "draws": json.loads(meta)["draws"],
            }
        out.append(rfc8785.dumps(entry) + b"\n")
    write_ledger(study, out)
    rechain(study, decisions=True)


def resum(study: Path, name: str, more: bytes) -> None:
    """Add to a sealed file and recompute the manifest and SHA256SUMS."""
    data = (study / name).read_bytes() + more
    (study / name).write_bytes(data)
    path = study / "seal" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for entry in manifest["files"]:
        if entry["path"] == name:
            entry |= {"size": len(data), "sha256": sha(data)}
    path.write_bytes(rfc8785.dumps(manifest) + b"\n")
    lines = [f"{f['sha256']}  {f['path']}\n" for f in manifest["files"]]
    lines.append(f"{sha(path.read_bytes())}  seal/manifest.json\n")
    (study / "seal" / "SHA256SUMS").write_text("".join(lines))


def ledger(study: Path) -> list[bytes]:
    """The ledger's lines, each with its newline."""
    return (study / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def write_ledger(study: Path, lines: list[bytes]) -> None:
    (study / "ledger.jsonl").write_bytes(b"".join(lines))


def rechain(study: Path, *, decisions: bool = False) -> None:
    """Write the ledger and its head anew with every digest right; only signatures are missing."""
    prev, out = "0" * 64, []
    for line in ledger(study):
        entry: dict[str, Any] = json.loads(line)
        if entry["type"] == "analysis" and decisions:
            entry["body"]["decisions_sha256"] = sha((study / "analysis" / "decisions.json").read_bytes())
        if entry["type"] == "collection-started" and not decisions:
            entry["body"]["workers"] += 1
        entry["body_sha256"] = sha(rfc8785.dumps(entry["body"]))
        entry["prev"] = prev
        out.append(rfc8785.dumps(entry) + b"\n")
        prev = sha(out[-1])
    write_ledger(study, out)
    path = study / "ledger.head.json"
    path.write_bytes(rfc8785.dumps(json.loads(path.read_bytes()) | {"head": prev}) + b"\n")


def git(study: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=R", "-c", "user.email=rex@example.org", *arguments]
    return subprocess.run(command, cwd=study, check=True, capture_output=True, text=True).stdout.strip()


def sign(study: Path, path: str, who: str, namespace: str) -> None:
    """Sign a file with the key of one person."""
    target = study / path
    target.with_name(target.name + ".sig").unlink(missing_ok=True)
    key = study.parents[2] / "keys" / who
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, str(target)]
    subprocess.run(command, check=True, capture_output=True)


def rewrite_analysis(study: Path, old: bytes, new: bytes) -> None:
    """From the collection on, everything is made anew by the reviewer, who has no key but their own."""
    report_name = "audit/report.json"
    names = ("ledger.jsonl", "ledger.head.json", "analysis/decisions.json", report_name)
    kept = {name: (study / name).read_bytes() for name in names}
    git(study, "reset", "-q", "--hard", git(study, "log", "-1", "--format=%H", "--", "records"))
    for name, data in kept.items():
        (study / name).parent.mkdir(exist_ok=True)
        (study / name).write_bytes(data)
    decisions = study / "analysis" / "decisions.json"
    assert old in kept["analysis/decisions.json"]
    decisions.write_bytes(kept["analysis/decisions.json"].replace(old, new))
    lines = ledger(study)
    assert [json.loads(line)["type"] for line in lines[-2:]] == ["analysis", "audit"]
    write_ledger(study, lines[:-1])
    rechain(study, decisions=True)
    lines[:-1] = ledger(study)
    report = json.loads(kept[report_name].replace(old, new)) | {"ledger_head": sha(lines[-2])}
    (study / report_name).write_bytes(rfc8785.dumps(report) + b"\n")
    sign(study, report_name, "rex", "prereg-audit")
    audit: dict[str, Any] = json.loads(lines[-1])
    audit["body"]["report_sha256"] = sha((study / report_name).read_bytes())
    audit["body"]["signature_sha256"] = sha((study / f"{report_name}.sig").read_bytes())
    write_ledger(study, [*lines[:-1], rfc8785.dumps(audit) + b"\n"])
    rechain(study, decisions=True)
    sign(study, "ledger.head.json", "rex", "prereg-ledger")
    git(study, "add", "-A")
    git(study, "commit", "-q", "-m", "Analyse and audit")


def rewrite_history(study: Path) -> None:
    """One commit with everything in it, in place of the commits that show the order."""
    repository = study.parent.parent
    for command in (
        ["checkout", "-q", "--orphan", "rewritten"],
        ["add", "-A"],
        ["-c", "user.name=E", "-c", "user.email=e@example.org", "commit", "-q", "-m", "All at once"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True, capture_output=True)


def sibling(study: Path, name: str, shift: int = 0) -> None:
    """Another study of the repository that reserves the same seeds, or their aliases."""
    other = study.parent / name
    other.mkdir()
    for file in ("protocol.json", "events.json", "predicates.json", "predictions.json"):
        shutil.copy(study / file, other / file)
    seeds = json.loads((study / "seeds.json").read_bytes())
    seeds["study"] = name
    for block in seeds["blocks"]:
        block["first"] = str(int(block["first"]) + shift)
        block["end"] = str(int(block["end"]) + shift)
    (other / "seeds.json").write_text(json.dumps(seeds))
