"""`prereg cosign`: another author signs the same seal (docs/formats.md section 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from prereg.codec.canonical import digest
from prereg.errors import UsageError, WrongState
from prereg.model.places import spans
from prereg.model.seal import Entry
from prereg.seal import sshsig
from prereg.seal.enter import enter
from prereg.seal.keys import SigningKey
from prereg.seal.signers import Signatures
from prereg.seal.trust import AUTHOR, SEAL, check_own_signer, load_trust, refuse_uncommitted
from prereg.seal.verified import VerifiedStudy
from prereg.seal.verify import verify_study
from prereg.store.files import read_once, write_whole
from prereg.store.layout import StudyPaths
from prereg.store.ledger import mend, read_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosigned:
    """One more signature of a seal."""

    entry: Entry
    signatures: Signatures
    """Who has signed now."""
    commit: str


def cosign_study(paths: StudyPaths, *, key: SigningKey, principal: str) -> Cosigned:
    """Sign the seal as one of the protocol's signers, enter that, sign the head and commit.

    A run that was cut off is finished by the next. Raises UsageError for somebody who is none of the
    signers, or who sealed, WrongState where the protocol names no signers, the signature is there, or a
    collection has begun, and Untrusted for a key that is not an allowed author's.
    """
    file = paths.cosignature(principal)
    _discard_unentered(paths, principal)

    def body(verified: VerifiedStudy) -> Mapping[str, Any]:
        _refuse(verified, key, principal)
        if file.exists():  # then the entry is there too, and only its head and commit were cut off
            armored = read_once(file)
        else:
            armored = key.sign(verified.manifest_bytes, namespace=SEAL)
            write_whole(file, armored)
        return {"seal": verified.seal, "signature_sha256": digest(armored)}

    refuse_uncommitted(paths)
    entry, commit = enter(
        paths,
        "cosigned",
        body,
        key=key,
        principal=principal,
        message=f"Cosign study {paths.name}: {principal}",
        touched=[paths.cosign],
    )
    signatures = verify_study(paths, records=False).signatures
    assert signatures is not None
    return Cosigned(entry=entry, signatures=signatures, commit=commit)


def _refuse(verified: VerifiedStudy, key: SigningKey, principal: str) -> None:
    where = str(verified.paths.root)
    plan = verified.study.protocol.signers
    if plan is None:
        raise WrongState(
            "the protocol names no signers: its author's signature is all that it needs",
            where=f"{where}/protocol.json",
            next_step=f"prereg status {where}",
        )
    if principal == verified.manifest.author.principal:
        raise UsageError(f"{principal} sealed the study; that is the signature", where="--key")
    if principal not in plan.principals:
        raise UsageError(
            f"{principal} is none of the protocol's signers: {', '.join(plan.principals)}", where="--key"
        )
    check_own_signer(
        load_trust(verified.paths),
        principal=principal,
        public_key=key.public_key,
        roles=AUTHOR,
        namespace=SEAL,
        at=datetime.now(UTC),
        where="--key",
    )


def _discard_unentered(paths: StudyPaths, principal: str) -> None:
    """Remove what a run of ours left that was killed between its signature and its entry."""
    file = paths.cosignature(principal)
    if not file.is_file() or not paths.ledger.is_file():
        return
    mend(paths)
    span = spans(read_ledger(read_once(paths.ledger)))[-1]
    if not any(e.type == "cosigned" and e.actor == principal for e in span):
        sshsig.parse(read_once(file), where=str(file))  # what is no signature is not ours to remove
        file.unlink()
