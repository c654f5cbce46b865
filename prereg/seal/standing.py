"""How far a seal is: who has signed it and whether its time is stamped, by its files alone.

`status` and `seal` show this. It judges no key and no history: `prereg verify` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from prereg.codec.convert import read_authored
from prereg.errors import PreregError, UsageError
from prereg.model.places import spans
from prereg.model.study import Protocol
from prereg.seal import sshsig
from prereg.seal.manifest import read_manifest
from prereg.seal.signers import Signatures, signatures_of
from prereg.seal.stamped import Stamp
from prereg.seal.timestamp import verify_timestamp
from prereg.seal.timestamp_client import check_url
from prereg.store.files import read_once
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a protocol asks of its seal, and what is there of it."""

    signatures: Signatures | None
    stamp: Stamp

    @property
    def verb(self) -> str | None:
        """The verb that must come before a collection, or None."""
        if self.signatures is not None and not self.signatures.complete:
            return "prereg cosign"
        if self.stamp.state != "none" and not self.stamp.entered:
            return "prereg timestamp"
        return None


def standing(paths: StudyPaths) -> Standing | None:
    """The standing of a sealed study; None for a draft, or if its files cannot be read."""
    try:
        protocol = _protocol(paths)
        manifest = read_manifest(read_once(paths.manifest))
        span = spans(read_ledger(read_once(paths.ledger)))[-1]
        keys = {
            entry.actor: sshsig.fingerprint(
                sshsig.parse(
                    read_once(paths.cosignature(entry.actor)), where=str(paths.cosignature(entry.actor))
                ).public_key
            )
            for entry in span
            if entry.type == "cosigned"
        }
    except PreregError:
        return None
    return Standing(
        signatures=signatures_of(protocol.signers, manifest, keys),
        stamp=_stamp(paths, protocol, entered=any(e.type == "timestamped" for e in span)),
    )


def refuse_stamp(paths: StudyPaths, url: str) -> None:
    """Raise UsageError if the protocol of a draft asks for no time stamp, or `url` is no address."""
    check_url(url)
    if _protocol(paths).timestamp is None:
        raise UsageError(
            "the protocol asks for no time stamp",
            where="protocol.json",
            next_step='"edition": 2, "timestamp": {"roots": "roots.pem"} in it, or no --timestamp',
        )


def _protocol(paths: StudyPaths) -> Protocol:
    return read_authored(read_once(paths.protocol), "protocol", Protocol, where="protocol.json")


def _stamp(paths: StudyPaths, protocol: Protocol, *, entered: bool) -> Stamp:
    if protocol.timestamp is None:
        return Stamp(state="none")
    if not paths.timestamp_response.exists():
        return Stamp(state="owed")
    try:
        time = verify_timestamp(
            read_once(paths.timestamp_request),
            read_once(paths.timestamp_response),
            signature=read_once(paths.manifest_signature),
            roots=read_once(paths.root / protocol.timestamp.roots),
        )
    except PreregError:
        return Stamp(state="attached", entered=entered)
    return Stamp(state="verified", time=time, entered=entered)
