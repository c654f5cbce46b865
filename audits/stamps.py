"""Stamps of heads (section 22): each is a signed head of the ledger and a timestamp over its signature.

They are looked at before the signatures that they may rescue (step 4), and told in step 6.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from audits.attested import Attested, Stamp
from audits.certificates import check_chain
from audits.fault import Fault, Found
from audits.heads import Signing, line_signed
from audits.ledger import HEAD, HEAD_SIGNATURE
from audits.lineage import REQUEST, RESPONSE
from audits.load import SMALL, Folder
from audits.signing import PROTOCOL, sealed_roots
from audits.sshsig import parse
from audits.timestamp import check_token

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

STAMPS = "stamps/"
_HOME = re.compile(r"stamps/([1-9][0-9]{0,15})/.*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A stamp whose token is sound; whether its head is, is asked next."""

    home: str
    stamp: Stamp
    pair: list[bytes]
    """The head and its signature."""


def check_stamps(
    folder: Folder,
    manifest: dict[str, Any],
    protocol: dict[str, Any] | None,
    signing: Signing | None,
    found: Found,
) -> Attested:
    """Check every stamp of a study; returns those that count, and never raises.

    ``protocol`` is as for ``check_signatures``. ``signing`` is None where the ledger's chain is broken: then
    no stamp attests anything, and its step fails.
    """
    numbers = sorted({int(match[1]) for path in folder.entries if (match := _HOME.fullmatch(path))})
    if protocol is not None and (protocol.get("edition", 1) < 3 or "timestamp" not in protocol):
        if (
            numbers or STAMPS.removesuffix("/") in folder.entries
        ):  # the empty folder is not to be there either
            found.fault("the protocol asks for no timestamp, or is not of edition 3", file=STAMPS)
        return Attested()
    if not numbers:
        return Attested()
    if protocol is None or signing is None:
        what = f"{PROTOCOL} cannot be used" if protocol is None else "the ledger's chain is broken"
        found.notes.append(f"stamps were not judged: {what}")
        return Attested()
    try:
        roots = sealed_roots(folder, manifest, protocol["timestamp"]["roots"])
    except Fault as fault:
        found.faults.append(fault)
        return Attested()
    candidates = []
    for number in numbers:
        try:
            candidates.append(_candidate(folder, number, roots))
        except Fault as fault:
            found.faults.append(fault.at(f"{STAMPS}{number}/{RESPONSE}"))
    return _counting(candidates, signing, found)


def _candidate(folder: Folder, number: int, roots: list[Certificate]) -> _Candidate:
    """A stamp with everything but its head checked."""
    home = f"{STAMPS}{number}/"
    pair = [folder.read(home + name, SMALL).data for name in (HEAD, HEAD_SIGNATURE)]
    request, response = (folder.read(home + name, SMALL).data for name in (REQUEST, RESPONSE))
    token = check_token(request, response, pair[1], of=home + HEAD_SIGNATURE)
    check_chain(token.signer, token.others, roots, token.time)
    try:
        key = parse(pair[1]).fingerprint
    except Fault as fault:
        raise fault.at(home + HEAD_SIGNATURE) from None
    return _Candidate(home=home, stamp=Stamp(line=number, key=key, time=token.time), pair=pair)


def _counting(candidates: list[_Candidate], signing: Signing, found: Found) -> Attested:
    """The stamps whose own head counts.

    A stamp speaks for its own head first. One that is from after its key was compromised is saved by another
    of the same key only if that one is from before, so it speaks for itself: a second look is enough.
    """
    wrong: list[tuple[_Candidate, Fault]] = []
    counting: list[Stamp] = []
    for one in candidates:
        try:
            _check_head(one, replace(signing, attested=Attested((one.stamp,))))
            counting.append(one.stamp)
        except Fault as why:
            wrong.append((one, why))
    first = replace(signing, attested=Attested(tuple(counting)))
    for one, fault in wrong:
        try:
            _check_head(one, first)
            counting.append(one.stamp)
        except Fault:
            found.faults.append(
                Fault(fault.what, file=one.home + (fault.file or HEAD), pointer=fault.pointer)
            )
    found.applied += len(counting)
    for stamp in sorted(counting, key=lambda stamp: stamp.line):
        told = f"lines 1 to {stamp.line}" if stamp.line > 1 else "line 1"
        found.notes.append(f"{told} and the head of {stamp.key} stamped {stamp.time.isoformat()}")
    return Attested(tuple(counting))


def _check_head(one: _Candidate, signing: Signing) -> None:
    wrong = Found()
    line = line_signed(one.pair, signing, wrong)
    if wrong.faults:
        raise wrong.faults[0]
    if line != one.stamp.line:
        raise Fault(f"is of line {line}, and lies in {one.home}", file=HEAD, pointer="/seq")
