"""Signers that a protocol names and trust/ does not allow to sign: such a seal could never be complete."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from prereg.draft.findings import Finding
from prereg.errors import PreregError
from prereg.model.study import Study
from prereg.seal.trust import AUTHOR, SEAL, Trust, Untrusted, check_signer, load_trust
from prereg.store.layout import StudyPaths

AT = "protocol.json#/signers"


def signer_findings(study: Study, paths: StudyPaths) -> Iterator[Finding]:
    """Every signer without a key that counts today, and keys too few for the signatures that are needed."""
    plan = study.protocol.signers
    if plan is None:
        return
    try:
        trust = load_trust(paths)
    except PreregError as error:
        what = f"whether its signers may sign is unknown: {error.where}: {error.what}"
        remedy = error.next_step or "prereg key new FILE --principal NAME --role author"
        yield Finding(severity="error", what=what, where=AT, next_step=remedy)
        return
    now = datetime.now(UTC)
    keys: set[bytes] = set()
    for i, principal in enumerate(plan.principals):
        own = _keys(trust, principal, now)
        keys |= own
        if not own:
            what = f"{principal} has no key in trust/ that an author signs seals with today"
            remedy = f"prereg key new FILE --principal {principal} --role author"
            yield Finding(severity="error", what=what, where=f"{AT}/principals/{i}", next_step=remedy)
    if len(keys) < plan.need:
        what = (
            f"{plan.need} signatures are needed, by different keys; trust/ knows {len(keys)} of its signers"
        )
        yield Finding(severity="error", what=what, where=f"{AT}/need", next_step="prereg key list")


def _keys(trust: Trust, principal: str, now: datetime) -> set[bytes]:
    """The keys with which a principal may sign a seal now."""
    found: set[bytes] = set()
    for key in {s.public_key for s in trust.signers if principal in s.principals}:
        try:
            check_signer(
                trust,
                principal=principal,
                public_key=key,
                roles=AUTHOR,
                namespace=SEAL,
                at=now,
                where=trust.where,
            )
        except Untrusted:
            continue
        found.add(key)
    return found
