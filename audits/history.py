"""Step 9: by git history, the seal came before the records, and the ledger only ever grew."""

from __future__ import annotations

from typing import Any

from audits.fault import Found
from audits.heads import Signing, check_heads
from audits.ledger import HEAD, HEAD_SIGNATURE, LEDGER
from audits.load import Folder, sha256
from audits.repo import Change, Repository
from audits.seal import MANIFEST

_LATE = ("analysis/", "audit/", HEAD)
"""What a verb rewrites before it commits."""


def check_history(folder: Folder, manifest: dict[str, Any], signing: Signing | None, found: Found) -> None:
    """Look at every commit of HEAD's history; raises ``NoHistory`` where there is none.

    ``signing`` is None where the ledger or the trusted keys could not be read: its step says so.
    """
    repository = Repository(folder.path)
    parents = repository.parents()
    changes = list(repository.changes(parents))
    found.applied += len(parents)
    seal = _seal_commit(repository, parents, changes, folder.read(MANIFEST).data, found)
    if seal is None:
        return
    found.notes.append(f"sealed by commit {seal}")
    later: set[str] = set()
    for commit, several in parents.items():
        if any(parent == seal or parent in later for parent in several):
            later.add(commit)
    for commit in sorted({change.commit for change in changes if change.path.startswith("records/")}):
        if commit not in later:
            found.fault(f"commit {commit} touches them, and does not come after the seal", file="records/")
    _check_base(manifest["commit"], seal, parents, found)
    _check_ledgers(repository, changes, later | {seal}, seal, folder.read(LEDGER).data, found)
    if signing is None:
        found.notes.append("the heads in history were not checked: they need the ledger and the trusted keys")
    else:
        check_heads(repository, parents, changes, later | {seal}, signing, found)
    _check_head(repository, folder, manifest, found)


def _seal_commit(
    repository: Repository,
    parents: dict[str, tuple[str, ...]],
    changes: list[Change],
    manifest: bytes,
    found: Found,
) -> str | None:
    """The commit that adds the present manifest: it has it, and none of its parents does."""
    touching = [change for change in changes if change.path == MANIFEST and change.mode != "000000"]
    bytes_of = repository.blobs(change.blob for change in touching)
    adding: dict[str, int] = {}
    for change in touching:
        if bytes_of[change.blob] == manifest:
            adding[change.commit] = adding.get(change.commit, 0) + 1
    first = [commit for commit in parents if adding.get(commit) == max(1, len(parents[commit]))]
    if len(first) == 1:
        return first[0]
    what = "more than one commit adds it" if first else "no commit of HEAD's history adds the bytes read here"
    found.fault(what, file=MANIFEST, then="audit a checkout of the study's repository")
    return None


def _check_base(base: str | None, seal: str, parents: dict[str, tuple[str, ...]], found: Found) -> None:
    before: set[str] = set()
    left = list(parents[seal])
    while left:
        commit = left.pop()
        if commit not in before:
            before.add(commit)
            left += parents[commit]
    if base is None and before:
        what = f"is null, yet commit {seal} that adds the seal has a parent"
        found.fault(what, file=MANIFEST, pointer="/commit")
    elif base is not None and base not in before:
        found.fault(f"is not an ancestor of {seal}, which adds the seal", file=MANIFEST, pointer="/commit")


def _check_ledgers(
    repository: Repository, changes: list[Change], since: set[str], seal: str, present: bytes, found: Found
) -> None:
    versions = [change for change in changes if change.path == LEDGER and change.commit in since]
    bytes_of = repository.blobs(change.blob for change in versions if change.mode != "000000")
    for change in versions:
        data = bytes_of.get(change.blob)
        if data is None:
            found.fault(f"commit {change.commit} removes it", file=LEDGER)
        elif not present.startswith(data):
            found.fault(f"commit {change.commit} has one that is not a prefix of it", file=LEDGER)
        elif change.commit == seal and data.count(b"\n") > 1:
            found.fault(f"commit {seal} adds the seal and already has later entries", file=LEDGER)


def _check_head(repository: Repository, folder: Folder, manifest: dict[str, Any], found: Found) -> None:
    """HEAD holds the sealed files as sealed, and the evidence as read."""
    head = {path: entry for path, entry in repository.head().items() if not path.startswith("report/")}
    bytes_of = repository.blobs(blob for mode, blob in head.values() if mode in ("100644", "100755"))
    sealed = {item["path"]: item for item in manifest["files"]}
    committed = bytes_of.get(head.get(LEDGER, ("", ""))[1])
    # A verb that has written its entry and not committed yet leaves the ledger longer than HEAD's.
    behind = committed is not None and committed != folder.read(LEDGER).data
    for path, (mode, blob) in head.items():
        data = bytes_of.get(blob)
        if mode not in ("100644", "100755") or data is None:
            found.fault(f"is no regular file in HEAD (mode {mode})", file=path)
        elif path in sealed:
            if (sha256(data), mode) != (sealed[path]["sha256"], sealed[path]["mode"]):
                found.fault("HEAD does not have the sealed bytes and mode", file=path)
        elif path == LEDGER or (behind and path.startswith(_LATE)):
            continue
        elif path not in folder.digests and not folder.has(path):
            found.fault("is in HEAD, but not in the folder", file=path)
        elif sha256(data) != folder.digests.get(path, "") and path in folder.digests:
            found.fault("HEAD has other bytes than those read here", file=path)
    if committed is None:
        found.fault("is not in HEAD", file=LEDGER)
    wanted = {*sealed, *folder.files("seal/"), *folder.files("records/")}
    if not behind:
        wanted |= {HEAD, HEAD_SIGNATURE, *folder.files("analysis/"), *folder.files("audit/")}
    for path in sorted(wanted - head.keys()):
        found.fault("is not committed: HEAD does not have it", file=path)
