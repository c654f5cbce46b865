"""Studies of edition 3 to put stamps of heads beside (section 22)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from audits_kit import Copy, failed, look, make_keys
from audits_seals import (
    KEYS,
    MIDDLE,
    SIGNERS,
    STAMPER,
    Sealed,
    amend,
    cosign,
    enter,
    revoke,
    second,
    stamp,
)
from audits_slow import Json
from audits_stamps import Stamp, request
from audits_tools import machine, make_key, sha, sign

ASKED = {"edition": 3, "timestamp": {"roots": "roots.pem"}}
EARLY = datetime(2026, 11, 29, 12, tzinfo=UTC)
AT = datetime(2026, 11, 29, 13, tzinfo=UTC)
"""When a key was compromised: after everything that the studies say of themselves."""
LATE = datetime(2026, 11, 29, 14, tzinfo=UTC)
HEAD, SIGNATURE, REQUEST, TOKEN = (
    "ledger.head.json", "ledger.head.json.sig", "timestamp.tsq", "timestamp.tsr",
)  # fmt: skip
FILES = (HEAD, SIGNATURE, REQUEST, TOKEN)
COMPROMISED = "no verified timestamp says that the signature is from before"


class Third(Sealed):
    """A study of edition 3, whose ledger says which shard is about to be drawn."""

    def entry(self, kind: str, actor: str, body: Json) -> None:
        if kind == "shard-stored":
            super().entry("attempt", actor, {key: body[key] for key in ("unit", "shard", "attempt")})
        super().entry(kind, actor, body)


class Stamped(Copy):
    """A copy of a study, its author's and others' keys at hand."""

    @property
    def entries(self) -> list[Json]:
        return [json.loads(line) for line in (self.study / "ledger.jsonl").read_bytes().splitlines()]

    def line(self, kind: str) -> int:
        """The last line of a type."""
        return max(i for i, entry in enumerate(self.entries, 1) if entry["type"] == kind)

    def head(self, line: int, **changes: Any) -> bytes:
        lines = (self.study / "ledger.jsonl").read_bytes().splitlines(keepends=True)
        entry = json.loads(lines[line - 1])
        value = {key: entry[key] for key in ("seq", "time", "actor")}
        value |= {"schema": "prereg/head/v1", "study": "tiny", "head": sha(lines[line - 1])}
        return machine(value | changes)

    def stamp(
        self,
        line: int | str,
        time: datetime = EARLY,
        key: str | None = None,
        *,
        home: str | None = None,
        head: bytes | None = None,
        namespace: str = "prereg-ledger",
        change: Callable[[Stamp], Stamp] = lambda one: one,
    ) -> Path:
        """Stamp the head of a line, or of the last one of a type, at a time."""
        number = self.line(line) if isinstance(line, str) else line
        data = self.head(number) if head is None else head
        who = self.entries[number - 1]["actor"].partition("@")[0]
        signature = sign(self.keys / (key or KEYS[who]), data, namespace)
        made = change(Stamp(data=signature, signer=STAMPER, chain=(MIDDLE,), time=time))
        folder = self.study / "stamps" / (home or str(number))
        folder.mkdir(parents=True)
        for name, content in zip(FILES, (data, signature, request(signature), made.response()), strict=True):
            (folder / name).write_bytes(content)
        return folder

    def revoke(self, who: str, reason: str = "compromised", at: datetime = AT) -> None:
        revoke(self, KEYS[who], at.isoformat(), reason)

    def failing(self) -> dict[int, str]:
        return failed(look(self.study))

    def told(self) -> str:
        """What step 6 says of a study with nothing wrong in it."""
        outcome = look(self.study)
        assert failed(outcome) == {}
        return outcome.steps[6].detail()


def stamped_keys(folder: Path) -> Path:
    """The keys of everybody."""
    make_keys(folder)
    make_key(folder, "third")
    return folder


def _made(root: Path, keys: Path, *before: Any, after: tuple[Any, ...] = (), **options: Any) -> Path:
    builder = Third(root / "r", keys, second(**(ASKED | options)))
    builder.before, builder.after = before, after
    builder.build()
    return builder.root


def whole(root: Path, keys: Path) -> Path:
    """Sealed and stamped by ann, signed by bob too, collected by col, audited by rev; ann ends it."""
    after = (lambda b: b.audit(), enter("deviation", about=[], text="late"))
    return _made(root, keys, stamp(), cosign(), after=after, signers=SIGNERS)


def young(root: Path, keys: Path) -> Path:
    """Sealed and amended by ann, without a timestamp yet."""
    return _made(root, keys, enter("deviation", about=[], text="early"), amend(), upto="sealed")


def copied(template: Path, root: Path, keys: Path) -> Stamped:
    """A copy of one of these to put stamps into."""
    shutil.copytree(template, root, symlinks=True)
    return Stamped(root, keys)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stamped_keys(tmp_path_factory.mktemp("audit-keys"))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    return whole(tmp_path_factory.mktemp("whole"), keys)


@pytest.fixture
def study(template: Path, keys: Path, tmp_path: Path) -> Stamped:
    return copied(template, tmp_path / "r", keys)
