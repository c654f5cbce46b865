"""Time stamps by the authority of the study `signed`, and by whoever else has a key for stamping."""

from __future__ import annotations

import hashlib
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import forge
import tools
from timestamp_fixture import Authority, integer, oid, seq, tlv

from prereg.seal.timestamp import verify_timestamp

REQUEST, RESPONSE = "seal/timestamp.tsq", "seal/timestamp.tsr"
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@cache
def authority(name: str = "own") -> Authority:
    """The authority that the study's roots believe, or under another name one that they don't."""
    _FOLDERS.append(tempfile.TemporaryDirectory())
    return Authority(folder=Path(_FOLDERS[-1].name))


def token(study: Path, **faults: Any) -> bytes:
    """The authority's answer to the study's request, with faults of `timestamp_fixture`."""
    now = f"{datetime.now(UTC):%Y%m%d%H%M%S}Z"
    return authority().token((study / REQUEST).read_bytes(), **({"time": now} | faults))


def request(data: bytes, nonce: int | None = 0x1234567890) -> bytes:
    """A request for a stamp of these bytes."""
    imprint = seq(seq(oid("2.16.840.1.101.3.4.2.1"), tlv(5)), tlv(4, hashlib.sha256(data).digest()))
    asked = integer(nonce) if nonce is not None else b""
    return seq(integer(1), imprint, asked, tlv(1, b"\xff"))


def enter(study: Path, files: dict[str, bytes], time: str | None = None) -> None:
    """Put these files in place of request or response, enter their digests and sign: nothing else is wrong.

    For a study whose last verb was `prereg timestamp`; its commit is made anew. `time` is that of the entry.
    """
    for name, data in files.items():
        (study / name).write_bytes(data)

    def change(found: list[Any]) -> None:
        assert found[-1]["type"] == "timestamped"
        body = found[-1]["body"]
        for key, name in (("request_sha256", REQUEST), ("token_sha256", RESPONSE)):
            if (study / name).exists():
                body[key] = tools.sha((study / name).read_bytes())
        if time is not None:
            body["time"] = time

    forge.entries(study, change, who="ada")
    forge.amend(study)


def made(study: Path) -> dict[str, Any]:
    """The body of a `timestamped` entry for the files that lie there."""
    request_bytes, response = ((study / name).read_bytes() for name in (REQUEST, RESPONSE))
    time = verify_timestamp(
        request_bytes,
        response,
        signature=(study / "seal/manifest.json.sig").read_bytes(),
        roots=authority().roots,
    )
    return {
        "request_sha256": tools.sha(request_bytes),
        "token_sha256": tools.sha(response),
        "time": time.isoformat(timespec="microseconds"),
    }
