"""The seals that an amended study had before its present one (docs/formats.md section 19, Amendment)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from prereg.codec.canonical import digest
from prereg.errors import PreregError, VerificationFailed
from prereg.model.seal import Manifest
from prereg.seal import sshsig
from prereg.seal.manifest import SUMS, WHERE, read_manifest, sums_bytes
from prereg.seal.revocation import Rescue
from prereg.seal.trust import AUTHOR, SEAL, Trust, check_signer
from prereg.store.files import read_in
from prereg.store.folder import Tree
from prereg.store.layout import StudyPaths
from prereg.store.ledger import parse_time

FOLDER = "seal/lineage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """One seal of a study, the present one or one that was amended."""

    seal: str
    """The seal digest."""
    manifest: Manifest
    data: bytes
    """The manifest's bytes."""
    folder: str
    """Where its files lie, relative to the study: `seal`, or a folder of the lineage."""

    @property
    def where(self) -> str:
        return f"{self.folder}/manifest.json"


def read_lineage(paths: StudyPaths, tree: Tree, present: bytes) -> tuple[Sealed, ...]:
    """Every seal of the study by the chain of `amends`, oldest first; the last is the present one.

    Each manifest is canonical and has the digest that the next one names, and study and rules stay. Raises
    VerificationFailed, also for anything in seal/lineage/ that is no part of the chain.
    """
    newest = Sealed(seal=digest(present), manifest=read_manifest(present), data=present, folder="seal")
    chain = [newest]
    while (before := chain[-1].manifest.amends) is not None:
        later = chain[-1]
        chain.append(_earlier(paths, before, later))
    known = {one.folder for one in chain}
    for name in (*tree.files, *tree.folders):
        parts = PurePosixPath(name).parts
        if parts[:2] == ("seal", "lineage") and len(parts) > 2 and "/".join(parts[:3]) not in known:
            raise VerificationFailed(
                "belongs to no seal that this one amends",
                where="/".join(parts[:3]),
                next_step=f"prereg amend {paths.root}, if an amendment was interrupted",
            )
    if len(chain) == 1 and FOLDER in tree.folders:
        raise VerificationFailed("is there, but nothing was amended", where=FOLDER)
    return tuple(reversed(chain))


def check_seal_signature(
    one: Sealed,
    armored: bytes,
    trust: Trust,
    *,
    stamped: datetime | None = None,
    rescue: Rescue | None = None,
) -> None:
    """Check that a manifest is signed by the author it names, who is allowed to.

    The key is judged at `stamped`, the time of a verified time stamp, or else at the manifest's own word;
    `rescue` asks the stamps of heads that attest the seal's entry.
    Raises VerificationFailed or Untrusted.
    """
    where = f"{one.where}.sig"
    author = one.manifest.author
    signature = sshsig.verify(armored, one.data, namespace=SEAL, where=where)
    name = sshsig.fingerprint(signature.public_key)
    if name != author.key:
        raise VerificationFailed(f"is by {name}, not by the author's key {author.key}", where=where)
    check_signer(
        trust,
        principal=author.principal,
        public_key=signature.public_key,
        roles=AUTHOR,
        namespace=SEAL,
        at=stamped or parse_time(one.manifest.created),
        attested=stamped is not None,
        rescue=rescue,
        where=where,
    )


def _earlier(paths: StudyPaths, seal: str, later: Sealed) -> Sealed:
    folder = f"{FOLDER}/{seal}"
    where = f"{folder}/manifest.json"
    data = read_in(paths.root, where)[0]
    if digest(data) != seal:
        raise VerificationFailed(f"its SHA-256 is not the `amends` of {later.where}", where=where)
    try:
        manifest = read_manifest(data)
    except PreregError as error:
        place = where if error.where is None else error.where.replace(WHERE, where)
        raise VerificationFailed(error.what, where=place) from None
    for name in ("study", "rules"):
        if getattr(manifest, name) != getattr(later.manifest, name):
            raise VerificationFailed(f"an amendment changed it ({later.where})", where=f"{where}#/{name}")
    if read_in(paths.root, f"{folder}/SHA256SUMS")[0] != sums_bytes(manifest, data):
        raise VerificationFailed(f"disagrees with {where}", where=f"{folder}/{SUMS.rpartition('/')[2]}")
    return Sealed(seal=seal, manifest=manifest, data=data, folder=folder)
