"""Faults in what a collector tells of attempts and second results; whatever they can sign is signed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forge
from tools import sha

Change = Callable[[list[Any]], Any]
TWICE = "records/drawn.same.on.attempt-2"
"""Where a unit lies that was tried again, whose first shard came three times."""
KEPT = f"{TWICE}/00000.duplicate-2.jsonl.gz"
"""The third result of that shard: three draws are not the same."""


def entries(study: Path, change: Change) -> None:
    """The collector changes the ledger, and their commit is made anew."""
    forge.entries(study, change)
    forge.amend(study)


def at(found: list[Any], kind: str, **body: Any) -> int:
    """The index of the first entry of that type whose body has these members."""
    return next(i for i, e in enumerate(found) if e["type"] == kind and e["body"].items() >= body.items())


def add(found: list[Any], before: int, kind: str, actor: str = "col", **body: Any) -> None:
    """Insert an entry at the time of the one that it precedes."""
    time = found[min(before, len(found) - 1)]["time"]
    found.insert(before, {"time": time, "type": kind, "actor": f"{actor}@example.org", "body": body})


def place(unit: str, shard: int, attempt: int) -> dict[str, Any]:
    """The members that name a shard in an attempt."""
    return {"unit": unit, "shard": shard, "attempt": attempt}


def drop(found: list[Any], kind: str, **body: Any) -> Any:
    """Take an entry out, and return it."""
    return found.pop(at(found, kind, **body))


def packed(lines: list[bytes]) -> bytes:
    """Lines as a shard is packed."""
    data = gzip.compress(b"".join(lines), 6, mtime=0)
    return data[:9] + b"\xff" + data[10:]


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def second_result(study: Path, change: Callable[[list[bytes]], Any], **told: Any) -> None:
    """The collector changes the kept second result in place, and tells of it as it is, but for `told`."""
    path = study / KEPT
    lines = lines_of(path)
    change(lines)
    path.write_bytes(packed(lines))
    first = lines_of(path.with_name("00000.jsonl.gz"))
    ours = {
        "records_sha256": sha(path.read_bytes()),
        "records_size": path.stat().st_size,
        "lines_sha256": sha(b"".join(lines)),
        "lines_size": sum(map(len, lines)),
        "lines": len(lines),
        "differing": abs(len(first) - len(lines)) + sum(a != b for a, b in zip(first, lines, strict=False)),
    }

    def entered(found: list[Any]) -> None:
        found[at(found, "duplicate", differing=3)]["body"].update(ours | told)

    entries(study, entered)


def rewrite(
    study: Path,
    name: str,
    lines: Callable[[bytes], bytes] = lambda text: text,
    meta: Callable[[dict[str, Any]], Any] = lambda value: None,
) -> None:
    """The collector rewrites a stored shard, `name` without its endings: all digests are right."""
    path, beside = study / f"{name}.jsonl.gz", study / f"{name}.meta.json"
    text = lines(gzip.decompress(path.read_bytes()))
    before = sha(path.read_bytes())
    data = packed([text])
    path.write_bytes(data)
    value = json.loads(beside.read_bytes())
    value |= {
        "records_sha256": sha(data),
        "records_size": len(data),
        "lines_sha256": sha(text),
        "lines_size": len(text),
    }
    meta(value)
    beside.write_bytes(forge.canonical(value))

    def entered(found: list[Any]) -> None:
        found[at(found, "shard-stored", records_sha256=before)]["body"].update(
            records_sha256=sha(data), records_size=len(data), meta_sha256=sha(beside.read_bytes())
        )

    entries(study, entered)
