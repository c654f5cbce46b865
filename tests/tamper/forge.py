"""Faults by somebody who holds a key: whatever one person can sign is signed, every digest is right.

What stands against them is what they do not hold: the other person's key, the rules of the formats, the
sealed plan, and the records that the decisions must follow from.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rfc8785
from tools import first_shard, git, ledger, sha, sign, write_ledger

MANIFEST = "seal/manifest.json"


def manifest(study: Path, change: Callable[[dict[str, Any]], Any], who: str = "ada") -> None:
    """The author changes the manifest and signs it again."""
    value = json.loads((study / MANIFEST).read_bytes())
    change(value)
    manifest_bytes(study, canonical(value), who)


def manifest_bytes(study: Path, data: bytes, who: str = "ada") -> None:
    """The author signs these bytes as the manifest, and SHA256SUMS says the same."""
    (study / MANIFEST).write_bytes(data)
    sums = (study / "seal" / "SHA256SUMS").read_text().splitlines(keepends=True)
    (study / "seal" / "SHA256SUMS").write_text("".join(sums[:-1]) + f"{sha(data)}  {MANIFEST}\n")
    sign(study, MANIFEST, who, "prereg-seal")


def manifest_text(study: Path, old: bytes, new: bytes) -> None:
    """The author replaces text of the manifest, whatever comes of it, and signs the bytes."""
    data = (study / MANIFEST).read_bytes()
    assert old in data
    manifest_bytes(study, data.replace(old, new, 1))


def listed(study: Path, path: str) -> None:
    """The author lists one more path, in its place, with the bytes of the first, and puts a file there."""

    def change(value: dict[str, Any]) -> None:
        value["files"].append(value["files"][0] | {"path": path})
        value["files"].sort(key=lambda entry: str(entry["path"]))

    manifest(study, change)
    files = json.loads((study / MANIFEST).read_bytes())["files"]
    sums = [*((f["sha256"], f["path"]) for f in files), (sha((study / MANIFEST).read_bytes()), MANIFEST)]
    (study / "seal" / "SHA256SUMS").write_text("".join(f"{one}  {name}\n" for one, name in sums))
    (study / path).parent.mkdir(parents=True, exist_ok=True)
    (study / path).write_bytes((study / files[0]["path"]).read_bytes())


def sealed_file(study: Path, name: str, data: bytes, who: str = "ada") -> None:
    """The author, or another, seals other bytes of a file: manifest, sums and signature say the same."""
    (study / name).write_bytes(data)

    def entered(value: dict[str, Any]) -> None:
        for entry in value["files"]:
            if entry["path"] == name:
                entry |= {"size": len(data), "sha256": sha(data)}

    sums = (study / "seal" / "SHA256SUMS").read_text().splitlines(keepends=True)
    sums = [f"{sha(data)}  {name}\n" if line.endswith(f"  {name}\n") else line for line in sums]
    (study / "seal" / "SHA256SUMS").write_text("".join(sums))
    manifest(study, entered, who)


def sealed_text(study: Path, name: str, old: bytes, new: bytes) -> None:
    """The author replaces text of a sealed file and seals it again."""
    data = (study / name).read_bytes()
    assert old in data
    sealed_file(study, name, data.replace(old, new, 1))


def sealed_again(study: Path, who: str = "ada", **more: Any) -> None:
    """The author enters the manifest as it is now as the seal, and their commit is made anew, without tag."""

    def entered(found: list[Any]) -> None:
        signature = (study / f"{MANIFEST}.sig").read_bytes()
        body = {"seal": sha((study / MANIFEST).read_bytes()), "signature_sha256": sha(signature)}
        found[0]["body"].update(body | more)

    entries(study, entered, who)
    amend(study)
    git(study, "tag", "-d", f"prereg/{study.name}/sealed")


def entries(study: Path, change: Callable[[list[Any]], Any], who: str = "col") -> None:
    """Change the ledger, chain it anew and sign its head; sequence numbers follow."""
    found = [json.loads(line) for line in ledger(study)]
    change(found)
    prev, out = "0" * 64, []
    for number, entry in enumerate(found, 1):
        entry |= {"seq": number, "prev": prev, "body_sha256": sha(rfc8785.dumps(entry["body"]))}
        out.append(canonical(entry))
        prev = sha(out[-1])
    write_ledger(study, out)
    last = found[-1]
    head(study, {"seq": last["seq"], "head": prev, "time": last["time"], "actor": last["actor"]}, who)


def amend(study: Path) -> None:
    """The last commit is made anew with what lies there, as if nothing else had ever been committed."""
    git(study, "add", "-A")
    git(study, "commit", "-q", "--amend", "-m", "The last verb")


def head(study: Path, changes: dict[str, Any], who: str = "col") -> None:
    """Change the head and sign it."""
    path = study / "ledger.head.json"
    path.write_bytes(canonical(json.loads(path.read_bytes()) | changes))
    sign(study, path.name, who, "prereg-ledger")


def shard(
    study: Path,
    lines: Callable[[list[bytes]], list[bytes]] = lambda found: found,
    *,
    meta: Callable[[dict[str, Any]], Any] = lambda value: None,
    packed: Callable[[bytes], bytes] | None = None,
    meta_bytes: Callable[[bytes], bytes] = lambda data: data,
) -> None:
    """The collector rewrites the first shard: lines, meta, ledger and head agree, and are signed.

    `packed` makes other bytes of the lines than gzip of the fixed form.
    """
    path = first_shard(study)
    text = b"".join(lines(gzip.decompress(path.read_bytes()).splitlines(keepends=True)))
    data = gzip.compress(text, 6, mtime=0) if packed is None else packed(text)
    if packed is None:
        data = data[:9] + b"\xff" + data[10:]
    path.write_bytes(data)
    place = path.with_name("00000.meta.json")
    value = json.loads(place.read_bytes())
    value |= {
        "records_sha256": sha(data),
        "records_size": len(data),
        "lines_sha256": sha(text),
        "lines_size": len(text),
    }
    meta(value)
    place.write_bytes(meta_bytes(canonical(value)))

    def entered(found: list[Any]) -> None:
        for entry in found:
            body = entry["body"]
            if (body.get("unit"), body.get("shard")) == (path.parent.name, 0):
                body |= {"records_sha256": sha(data), "records_size": len(data)}
                body["meta_sha256"] = sha(place.read_bytes())

    entries(study, entered)
    amend(study)


def record(study: Path, old: bytes, new: bytes) -> None:
    """The collector replaces text in the first line of the first shard that has it."""

    def changed(lines: list[bytes]) -> list[bytes]:
        at = next(number for number, line in enumerate(lines) if old in line)
        lines[at] = lines[at].replace(old, new, 1)
        return lines

    shard(study, changed)


def decisions(study: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The author, who analysed last, decides otherwise: decisions, ledger, head and commit are theirs."""
    value = json.loads((study / "analysis" / "decisions.json").read_bytes())
    change(value)
    decisions_bytes(study, canonical(value))


def decisions_bytes(study: Path, data: bytes) -> None:
    """The author enters these bytes as the decisions, and their commit with them."""
    (study / "analysis" / "decisions.json").write_bytes(data)

    def entered(found: list[Any]) -> None:
        assert found[-1]["type"] == "analysis"
        found[-1]["body"]["decisions_sha256"] = sha(data)

    entries(study, entered, who="ada")
    amend(study)


def of(name: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one configuration of a decisions file."""

    def change(value: dict[str, Any]) -> None:
        next(c for c in value["configurations"] if c["id"] == name).update(fields)

    return change


def canonical(value: Any) -> bytes:
    """The bytes of a machine's file."""
    return rfc8785.dumps(value) + b"\n"
