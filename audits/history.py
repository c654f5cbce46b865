"""Step 9: by git history, the seals came before the records, and the ledger only ever grew."""

from __future__ import annotations

from audits.fault import Fault, Found
from audits.heads import Signing, check_heads
from audits.jsonc import parse
from audits.ledger import HEAD, HEAD_SIGNATURE, LEDGER
from audits.lineage import Seal
from audits.load import Folder, sha256
from audits.repo import Change, Repository
from audits.seal import MANIFEST
from audits.signing import PROTOCOL
from audits.trailers import check_tags, check_trailers

_REWRITTEN = ("analysis/", "audit/", HEAD)
"""What a verb rewrites before it commits."""
_ADDED = ("records/", "analysis/", "audit/")
"""Where a verb lays files before it commits."""
_FILES = ("100644", "100755")
"""The modes of a regular file."""


def check_history(folder: Folder, seals: list[Seal], signing: Signing | None, found: Found) -> None:
    """Look at every commit of HEAD's history; raises ``NoHistory`` where there is none.

    ``seals`` is the lineage, the present seal last. ``signing`` is None where the ledger or the trusted keys
    could not be read: its step says so.
    """
    repository = Repository(folder.path)
    parents = repository.parents()
    changes = list(repository.changes(parents))
    found.applied += len(parents)
    sealing = [_seal_commit(repository, parents, changes, folder, seal, found) for seal in seals]
    present = sealing[-1]
    if present is None:
        return
    found.notes.append(f"sealed by commit {present}")
    later = _after(present, parents)
    for touching in sorted({change.commit for change in changes if change.path.startswith("records/")}):
        if touching not in later:
            found.fault(f"commit {touching} touches them, and does not come after the seal", file="records/")
    added = [(seal, commit) for seal, commit in zip(seals, sealing, strict=True) if commit is not None]
    first = added[0][1]
    since = _after(first, parents) | {first}
    lines = {} if signing is None else signing.ledger.sealing()
    limits = {first: 1}
    for seal, commit in added:
        _check_base(seal, commit, parents, found)
        if commit not in since:
            found.fault(f"commit {commit} adds it before the seal that it amends", file=seal.path)
        if seal.digest in lines:
            limits[commit] = lines[seal.digest]
    _check_editions(repository, added, found)
    _check_ledgers(repository, changes, since, limits, folder.read(LEDGER).data, found)
    check_tags(repository, seals, None if signing is None else signing.ledger, found)
    if signing is None:
        found.notes.append("heads and trailers were not checked: they need the ledger and the trusted keys")
    else:
        check_heads(repository, parents, changes, since, signing, found)
        check_trailers(repository, [c for c in parents if c in since], seals, signing.ledger, found)
    _check_head(repository, folder, seals[-1], found)


def _after(seal: str, parents: dict[str, tuple[str, ...]]) -> set[str]:
    """The commits that a commit is an ancestor of."""
    later: set[str] = set()
    for commit, several in parents.items():
        if any(parent == seal or parent in later for parent in several):
            later.add(commit)
    return later


def _seal_commit(
    repository: Repository,
    parents: dict[str, tuple[str, ...]],
    changes: list[Change],
    folder: Folder,
    seal: Seal,
    found: Found,
) -> str | None:
    """The commit that adds a manifest as the present one: it has it, and none of its parents does."""
    manifest = folder.read(seal.path).data
    # A parent that has the same object has those bytes: another mode alone adds nothing.
    touching = [
        change
        for change in changes
        if change.path == MANIFEST and change.mode != "000000" and change.blob != change.before
    ]
    bytes_of = repository.blobs(change.blob for change in touching)
    adding: dict[str, int] = {}
    for change in touching:
        if bytes_of[change.blob] == manifest:
            adding[change.commit] = adding.get(change.commit, 0) + 1
    first = [commit for commit in parents if adding.get(commit) == max(1, len(parents[commit]))]
    if len(first) == 1:
        return first[0]
    what = "more than one commit adds it" if first else "no commit of HEAD's history adds the bytes read here"
    found.fault(what, file=seal.path, then="audit a checkout of the study's repository")
    return None


def _check_base(seal: Seal, added: str, parents: dict[str, tuple[str, ...]], found: Found) -> None:
    """The commit that a manifest was made on is an ancestor of the one that adds it."""
    base = seal.manifest["commit"]
    before: set[str] = set()
    left = list(parents[added])
    while left:
        commit = left.pop()
        if commit not in before:
            before.add(commit)
            left += parents[commit]
    if base is None and before:
        what = f"is null, yet commit {added} that adds the seal has a parent"
        found.fault(what, file=seal.path, pointer="/commit")
    elif base is not None and base not in before:
        found.fault(f"is not an ancestor of {added}, which adds the seal", file=seal.path, pointer="/commit")


def _check_editions(repository: Repository, added: list[tuple[Seal, str]], found: Found) -> None:
    """Amendments keep the edition, by the sealed protocol of the commit that adds each seal."""
    before: int | None = None
    for seal, commit in added if len(added) > 1 else ():
        try:
            edition = _edition(repository, seal, commit)
        except Fault as fault:
            what = f"commit {commit} adds the seal {seal.digest[:12]}, and there {fault.what}"
            found.fault(what, file=PROTOCOL, pointer=fault.pointer)
            continue
        if before is not None and edition != before:
            what = (
                f"the seal of commit {commit} is of another edition, {edition}, than the one before, {before}"
            )
            found.fault(what, file=PROTOCOL, pointer="/edition")
        before = edition
        found.applied += 1


def _edition(repository: Repository, seal: Seal, commit: str) -> int:
    """The edition of the protocol that a seal binds, as the commit that adds the seal has it."""
    mode, blob = repository.tree(commit).get(PROTOCOL, ("", ""))
    if mode not in _FILES:
        raise Fault("it is no regular file")
    data = repository.blobs([blob])[blob]
    sealed = next((item["sha256"] for item in seal.manifest["files"] if item["path"] == PROTOCOL), None)
    if sha256(data) != sealed:
        raise Fault("it is not the one that is sealed")
    protocol = parse(data)
    if not isinstance(protocol, dict):
        raise Fault("it is no object")
    edition = protocol.get("edition")
    return int(edition) if edition in (2, 3) else 1


def _check_ledgers(
    repository: Repository,
    changes: list[Change],
    since: set[str],
    limits: dict[str, int],
    present: bytes,
    found: Found,
) -> None:
    """Every ledger is a prefix of the present one; ``limits`` is how long it may be where a seal is added."""
    versions = {
        (change.commit, change.mode, change.blob)
        for change in changes
        if change.path == LEDGER and change.commit in since
    }
    # The commit of a seal may hold one from before it.
    held = [(commit, *repository.tree(commit).get(LEDGER, ("000000", ""))) for commit in limits]
    versions.update(one for one in held if one[2])
    bytes_of = repository.blobs(blob for _, mode, blob in versions if mode in _FILES)
    for commit, mode, blob in sorted(versions):
        data = bytes_of.get(blob)
        if mode == "000000":
            found.fault(f"commit {commit} removes it", file=LEDGER)
        elif data is None:
            found.fault(f"commit {commit} has one that is no regular file (mode {mode})", file=LEDGER)
        elif not present.startswith(data):
            found.fault(f"commit {commit} has one that is not a prefix of it", file=LEDGER)
        # A line that is cut short is one, too.
        elif commit in limits and data.removesuffix(b"\n").count(b"\n") >= limits[commit]:
            found.fault(f"commit {commit} adds the seal and already has later entries", file=LEDGER)


def _check_head(repository: Repository, folder: Folder, seal: Seal, found: Found) -> None:
    """HEAD holds the sealed files as sealed, and the evidence as read, and nothing else.

    Stamps of heads may be missing from it (section 22).
    """
    head = {path: entry for path, entry in repository.tree().items() if not path.startswith("report/")}
    digests = repository.digests(blob for mode, blob in head.values() if mode in _FILES)
    sealed = {item["path"]: item for item in seal.manifest["files"]}
    mode, blob = head.get(LEDGER, ("", ""))
    present = folder.read(LEDGER).data
    committed = repository.blobs([blob])[blob] if mode in _FILES else None
    # A verb that was cut off, or is at work, has written entries and not committed them.
    behind = committed is not None and len(committed) < len(present)
    for path, (mode, blob) in head.items():
        if mode not in _FILES:
            found.fault(f"is no regular file in HEAD (mode {mode})", file=path)
        elif path in sealed:
            if (digests[blob], mode) != (sealed[path]["sha256"], sealed[path]["mode"]):
                found.fault("HEAD does not have the sealed bytes and mode", file=path)
        elif path == LEDGER:
            if committed is not None and not present.startswith(committed):
                found.fault("HEAD has one that is not a prefix of it", file=path)
        elif not (behind and path.startswith(_REWRITTEN)):
            _check_same(folder, path, digests[blob], found)
    if committed is None:
        found.fault("is not in HEAD", file=LEDGER)
    wanted = {*sealed, *folder.files("seal/"), HEAD, HEAD_SIGNATURE}
    late = _late(present, seal.digest, behind)
    wanted -= {path for path in wanted if path.startswith(late)}
    for place in () if behind else _ADDED:
        wanted.update(folder.files(place))
    for path in sorted(wanted - head.keys()):
        found.fault("is not committed: HEAD does not have it", file=path)


def _late(ledger: bytes, seal: str, behind: bool) -> tuple[str, ...]:
    """How files of ``seal/`` begin that HEAD may not have yet: a stamp waits for its entry (section 18)."""
    if behind:
        return ("seal/cosign/", "seal/timestamp.")
    stamped = (b'"type":"timestamped"', seal.encode("ascii"))
    entered = any(all(part in line for part in stamped) for line in ledger.splitlines())
    return () if entered else ("seal/timestamp.",)


def _check_same(folder: Folder, path: str, committed: str, found: Found) -> None:
    """A file of HEAD lies in the folder, with the same bytes, whose digest is ``committed``."""
    if not folder.has(path):
        found.fault("is in HEAD, but not in the folder", file=path)
        return
    try:
        # What no step before this one has looked at is read here.
        digest = folder.digests.get(path) or folder.read(path, keep=False).digest
    except Fault as fault:
        found.faults.append(fault)
        return
    if committed != digest:
        found.fault("HEAD has other bytes than those read here", file=path)
