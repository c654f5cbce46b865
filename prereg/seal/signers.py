"""Several signatures of one seal: what they must be, and whose are missing (docs/formats.md section 17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prereg.codec.canonical import digest
from prereg.errors import VerificationFailed, WrongState
from prereg.model.places import spans
from prereg.model.seal import Entry, Manifest
from prereg.model.study import SignersPlan
from prereg.seal import sshsig
from prereg.seal.head_stamps import HeadStamps
from prereg.seal.lineage import Sealed
from prereg.seal.trust import AUTHOR, SEAL, Trust, check_signer
from prereg.store.folder import Tree
from prereg.store.ledger import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Signatures:
    """Who has signed the present seal, against who is needed."""

    need: int
    signed: tuple[str, ...]
    """Principals of the list, no two with one key."""
    missing: tuple[str, ...]
    """Principals of the list who have not signed."""

    @property
    def complete(self) -> bool:
        return len(self.signed) >= self.need

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "need": self.need,
            "signed": list(self.signed),
            "missing": list(self.missing),
            "complete": self.complete,
        }

    def __str__(self) -> str:
        return f"{len(self.signed)} of {self.need} signatures"


def signatures_of(plan: SignersPlan | None, manifest: Manifest, keys: Mapping[str, str]) -> Signatures | None:
    """Who has signed, by the fingerprints of the cosigners' keys; None where the author's is enough."""
    if plan is None:
        return None
    signed: dict[str, str] = {}
    for principal, key in {manifest.author.principal: manifest.author.key, **keys}.items():
        if principal in plan.principals and key not in signed.values():
            signed[principal] = key
    missing = (p for p in plan.principals if p != manifest.author.principal and p not in keys)
    return Signatures(need=plan.need, signed=tuple(signed), missing=tuple(missing))


def check_cosigners(
    read: Callable[[str], bytes],
    tree: Tree,
    lineage: Sequence[Sealed],
    plan: SignersPlan | None,
    entries: Sequence[Entry] | None,
    trust: Trust,
    *,
    folder: str,
    lenient: bool,
    heads: HeadStamps | None = None,
) -> Signatures | None:
    """Check every signature of seal/cosign/, and that no collection went before enough of them (step 4).

    `read` gives the bytes of a file of the study, the same ones whenever it is asked; `folder` is where the
    study lies, for the next command. Without `entries`, because the ledger is no chain (step 6), the
    signatures alone are checked. `lenient` lets through what a killed `prereg cosign` leaves; `heads` are the
    stamps of heads. Raises
    VerificationFailed or Untrusted.
    """
    said = spans(entries or ())
    for i, one in enumerate(lineage[:-1]):
        _check_earlier(read, tree, one, said[i] if i < len(said) else (), trust, heads)
    present = lineage[-1]
    span = said[-1] if said and len(said) == len(lineage) else ()
    told = {e.actor: e for e in span if e.type == "cosigned"}
    files = _cosignatures(tree, present)
    if plan is None:
        if files or "seal/cosign" in tree.folders:
            raise VerificationFailed("is there, but the protocol names no signers", where="seal/cosign")
        if told:
            raise VerificationFailed("the protocol names no signers", where=_line(next(iter(told.values()))))
        return None
    keys: dict[str, str] = {}
    for principal, name in files.items():
        if principal not in plan.principals:
            raise VerificationFailed(f"{principal} is none of the protocol's signers", where=name)
        if principal == present.manifest.author.principal:
            raise VerificationFailed(f"{principal} sealed the study; that is the signature", where=name)
        entry = told.get(principal)
        if entry is None and entries is not None and not lenient:
            raise VerificationFailed(
                "has no ledger entry", where=name, next_step=f"prereg cosign {folder}, as {principal}"
            )
        keys[principal] = _check(read, name, present, principal, trust, entry, heads)
    signed = signatures_of(plan, present.manifest, {p: k for p, k in keys.items() if p in told})
    assert signed is not None
    started = next((e for e in span if e.type == "collection-started"), None)
    if started is not None and not signed.complete:
        raise VerificationFailed(f"a collection began with {signed}", where=_line(started))
    return signed


def refuse_unsigned(signatures: Signatures | None, where: str) -> None:
    """Raise WrongState unless the seal is complete."""
    if signatures is None or signatures.complete:
        return
    raise WrongState(
        f"the seal has {signatures}; missing: {', '.join(signatures.missing)}",
        where=where,
        next_step=f"prereg cosign {where} --key KEY, as {' or '.join(signatures.missing)}",
    )


def _check_earlier(
    read: Callable[[str], bytes],
    tree: Tree,
    one: Sealed,
    span: Iterable[Entry],
    trust: Trust,
    heads: HeadStamps | None,
) -> None:
    """What an amended seal had of other signatures is good, and in the ledger."""
    told = {e.actor: e for e in span if e.type == "cosigned"}
    for principal, name in _cosignatures(tree, one).items():
        if principal not in told:
            raise VerificationFailed("has no ledger entry", where=name)
        _check(read, name, one, principal, trust, told[principal], heads)


def check_cosigned_entries(
    read: Callable[[str], bytes], tree: Tree, lineage: Sequence[Sealed], entries: Sequence[Entry]
) -> None:
    """Hold each `cosigned` entry against its signature's file (step 6).

    `read` gives the bytes that step 4 verified. Raises VerificationFailed.
    """
    for one, span in zip(lineage, spans(entries), strict=False):
        files = _cosignatures(tree, one)
        for entry in span:
            if entry.type != "cosigned":
                continue
            name = files.get(entry.actor)
            if name is None:
                raise VerificationFailed(
                    f"its signature is missing; {_line(entry)} has it",
                    where=f"{one.folder}/cosign/{entry.actor}.sig",
                )
            if digest(read(name)) != entry.body["signature_sha256"]:
                raise VerificationFailed(
                    f"is not the digest of {name}", where=f"{_line(entry)}#/body/signature_sha256"
                )


def _check(
    read: Callable[[str], bytes],
    name: str,
    one: Sealed,
    principal: str,
    trust: Trust,
    entry: Entry | None,
    heads: HeadStamps | None,
) -> str:
    """Check one signature, at the time of its entry if it has one; returns the fingerprint of its key."""
    armored = read(name)
    # A stamp attests what the entry has the digest of, and no other signature.
    told = entry is not None and entry.body["signature_sha256"] == digest(armored)
    found = sshsig.verify(armored, one.data, namespace=SEAL, where=name)
    check_signer(
        trust,
        principal=principal,
        public_key=found.public_key,
        roles=AUTHOR,
        namespace=SEAL,
        at=parse_time(one.manifest.created if entry is None else entry.time),
        rescue=heads.entry(entry.seq) if heads is not None and entry is not None and told else None,
        where=name,
    )
    return sshsig.fingerprint(found.public_key)


def _cosignatures(tree: Tree, one: Sealed) -> dict[str, str]:
    """The files of other signatures of one seal, by principal."""
    folder = f"{one.folder}/cosign/"
    found = (name for name in tree.files if name.startswith(folder) and name.endswith(".sig"))
    return {name.removeprefix(folder).removesuffix(".sig"): name for name in found}


def _line(entry: Entry) -> str:
    return f"ledger.jsonl:{entry.seq}"
