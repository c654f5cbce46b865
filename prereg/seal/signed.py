"""Who signed a study's seals and its head, and when by stamps: what steps 4 and 6 of verification ask."""

from __future__ import annotations

from collections.abc import Sequence

from prereg.codec.canonical import digest
from prereg.codec.convert import read_authored
from prereg.errors import PreregError, VerificationFailed
from prereg.model.places import spans
from prereg.model.seal import Entry
from prereg.model.study import Protocol
from prereg.seal.head import check_head
from prereg.seal.head_stamps import HeadStamps, read_head_stamps
from prereg.seal.lineage import Sealed, check_seal_signature
from prereg.seal.manifest import WHERE
from prereg.seal.revocation import Rescue
from prereg.seal.signers import check_cosigners
from prereg.seal.stamped import Stamp, check_stamp, earlier_stamps
from prereg.seal.trust import load_trust
from prereg.seal.verified import Run
from prereg.store.ledger import line_digests, read_ledger
from prereg.store.repo import Repo


def check_signatures(run: Run) -> str:
    """Check who signed each seal, and its stamp (step 4); returns a word on them.

    Leaves in `run` the trust files, the stamps of heads, which step 6 judges, the state of the seal's stamp,
    its other signatures, and the bytes of every seal's signature. Raises VerificationFailed or Untrusted.
    """
    heads = run.found["head_stamps"] = HeadStamps()
    armored = run.read(f"{WHERE}.sig")
    run.found["trust"] = load_trust(run.paths)
    stamp, signed, stamped = Stamp(state="none"), None, {}
    # What a protocol asks for is known once step 3 has found its bytes to be the sealed ones.
    asked, entries = _asked(run), _entries_or_none(run)
    common = (run.read, run.tree, run.lineage)
    if asked is not None:
        heads = read_head_stamps(run.read, run.tree, asked, files=run.files, trust=run.trust)
        run.found["head_stamps"] = heads
        stamped = earlier_stamps(*common, asked.timestamp, files=run.files)
        stamp = check_stamp(*common, asked.timestamp, entries, files=run.files, signature=armored)
    rescue = _attested(heads, entries, run.lineage[-1], armored)
    check_seal_signature(run.lineage[-1], armored, run.trust, stamped=stamp.time, rescue=rescue)
    if asked is not None:
        signed = check_cosigners(
            *common,
            asked.signers,
            entries,
            run.trust,
            folder=str(run.paths.root),
            lenient=run.lenient,
            heads=heads,
        )
    signatures = {run.seal: armored}
    for one in run.lineage[:-1]:
        found = run.read(f"{one.where}.sig")
        rescue = _attested(heads, entries, one, found)
        check_seal_signature(one, found, run.trust, stamped=stamped.get(one.seal), rescue=rescue)
        signatures[one.seal] = found
    run.found |= {"stamp": stamp, "cosigned": signed, "signatures": signatures}
    author = run.manifest.author
    detail = f"{author.principal} {author.key}"
    if signed is not None:
        detail += f"; {signed}"
    if stamp.state != "none":
        detail += f"; time stamp {stamp}"
    return detail


def signed_head(run: Run, data: bytes) -> int:
    """Check the head of the ledger `data` and its signature (step 6); returns how many entries it signs.

    After a killed verb the committed pair may stand in for them. Raises VerificationFailed.
    """

    def check(head: bytes, signature: bytes) -> int:
        return check_head(
            head,
            signature,
            study=run.manifest.study,
            entries=run.entries,
            lines=line_digests(data),
            trust=run.trust,
            behind=run.lenient,
            attests=run.head_stamps.head,
        )

    try:
        return check(run.read("ledger.head.json"), run.read("ledger.head.json.sig"))
    except VerificationFailed:
        if not run.lenient:
            raise
        # Head and signature are two files: a kill between the two renames leaves a pair that does not match.
        repo = Repo.find(run.paths.root)
        commit = repo.head()
        pair = [repo.blob_at(commit, p) for p in (run.paths.head, run.paths.head_signature)] if commit else []
        if len(pair) != 2 or pair[0] is None or pair[1] is None:
            raise
        return check(pair[0], pair[1])


def _attested(
    heads: HeadStamps, entries: Sequence[Entry] | None, one: Sealed, armored: bytes
) -> Rescue | None:
    """What the stamps of heads say of a seal's signature, by the entry that has its digest."""
    for span in spans(entries or ()):
        made = span[0].body
        if made["seal"] == one.seal and made["signature_sha256"] == digest(armored):
            return heads.entry(span[0].seq)
    return None


def _asked(run: Run) -> Protocol | None:
    """The protocol, for what it asks of the seal; one that is not understood is for steps 3 and 5 to name."""
    try:
        return read_authored(run.files["protocol.json"], "protocol", Protocol, where="protocol.json")
    except (KeyError, PreregError):
        return None


def _entries_or_none(run: Run) -> tuple[Entry, ...] | None:
    """The ledger's entries; one that is no chain is for step 6 to name."""
    try:
        return read_ledger(run.read("ledger.jsonl"))
    except PreregError:
        return None
