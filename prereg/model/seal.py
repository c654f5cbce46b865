"""The seal and the ledger as values (docs/formats.md sections 3 to 5 and 19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from prereg.model.image import Image

State = Literal["draft", "sealed", "collecting", "collected", "analysed", "audited", "closed"]
Role = Literal["author", "reviewer", "collector"]
EntryType = Literal[
    "sealed",
    "collection-started",
    "shard-stored",
    "unit-invalid",
    "collection-ended",
    "analysis",
    "audit",
    "cosigned",
    "timestamped",
    "pushed",
    "amended",
    "deviation",
    "relocation",
    "closed",
    "attempt",
    "duplicate",
]
EDITION_2: tuple[EntryType, ...] = (
    "cosigned",
    "timestamped",
    "pushed",
    "amended",
    "deviation",
    "relocation",
    "closed",
)
"""Entries that came with edition 2 (docs/formats.md section 19)."""
EDITION_3: tuple[EntryType, ...] = ("attempt", "duplicate")
"""Entries that came with edition 3 (docs/formats.md section 21)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    path: str
    size: int
    mode: Literal["100644", "100755"]
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    principal: str
    key: str
    """OpenSSH fingerprint, `SHA256:…`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    schema: Literal["prereg/manifest/v1"] = "prereg/manifest/v1"
    study: str
    created: str
    commit: str | None
    author: Signer
    rules: Literal[1]
    environments: dict[str, str]
    files: tuple[SealedFile, ...]
    amends: str | None = None
    """The digest of the seal that this one amends."""
    images: dict[str, Image] | None = None
    """The container image of each build; there exactly if workers run in containers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a ledger; `body` is the JSON object that its type prescribes."""

    seq: int
    time: str
    type: EntryType
    actor: str
    body: dict[str, Any]
    body_sha256: str
    prev: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    schema: Literal["prereg/head/v1"] = "prereg/head/v1"
    study: str
    seq: int
    head: str
    time: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One numbered verification step (docs/formats.md section 13)."""

    number: int
    name: str
    status: Literal["ok", "failed", "not-checked"]
    applied: int
    detail: str
    next_step: str | None = None
    """What gets the user on, where the step failed and one is known."""
