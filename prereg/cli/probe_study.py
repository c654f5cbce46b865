"""A probe in the notes of a draft: one line of `searches.jsonl`, before anything is sealed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prereg.errors import UsageError, WrongState

NAME = "searches.jsonl"


def check_draft(folder: Path) -> None:
    """Refuse (WrongState) a study that is past its draft, and (UsageError) what is no study."""
    from prereg.model.places import state
    from prereg.seal.verify import NEXT
    from prereg.store.files import read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import read_ledger

    paths = study_paths(folder)
    if not paths.protocol.is_file():
        raise UsageError("this is no study", where=str(folder), next_step=f"prereg draft {folder}")
    data = read_once(paths.ledger) if paths.ledger.exists() else b""
    now = state(read_ledger(data)) if data else "draft"
    if now != "draft" or paths.seal.exists():
        raise WrongState(
            f"the study is {now if now != 'draft' else 'being sealed'}: its pilots are closed",
            where=str(folder),
            next_step=f"{NEXT[now]} {folder}" if now != "draft" else f"prereg verify {folder}",
        )


def log(folder: Path, value: Mapping[str, Any]) -> None:
    """Append a probe to the study's searches: what was asked of which environment, when, and what came out.

    One canonical JSON object a line. Raises WrongState as `check_draft` does, if the study was sealed while
    the probe ran.
    """
    from prereg.codec.canonical import dump_file
    from prereg.collect.runtime import built, load_build
    from prereg.store.layout import study_paths

    check_draft(folder)
    marker = built(load_build(value["configuration"]["build"]))
    kept = ("channel", "configuration", "model", "prompt", "first", "verdict", "reason", "tolerance")
    numbers = ("tv_lower", "tv_upper", "runs", "unexplored", "draws", "seeds", "gap", "event")
    line = {
        "kind": "pilot",
        "tool": "prereg probe",
        "time": datetime.now(UTC).isoformat(),
        "fingerprint": None if marker is None else marker.fingerprint,
        **{name: value[name] for name in (*kept, *numbers) if name in value},
    }
    path = study_paths(folder).root / NAME
    before = path.read_bytes() if path.exists() else b""
    with path.open("ab") as file:
        if before and not before.endswith(b"\n"):
            file.write(b"\n")
        file.write(dump_file(line))
        file.flush()
        os.fsync(file.fileno())
