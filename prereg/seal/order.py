"""The order proof by git history: seal first, records after, the ledger only growing (section 5)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from prereg.codec.canonical import digest, loads
from prereg.errors import PreregError, VerificationFailed
from prereg.model.seal import Entry
from prereg.seal.head import check_head
from prereg.seal.lineage import Sealed
from prereg.seal.trust import Trust
from prereg.store.layout import StudyPaths
from prereg.store.repo import Repo


def check_order(
    paths: StudyPaths, *, lineage: Sequence[Sealed], ledger: bytes
) -> tuple[int, tuple[str, ...]]:
    """Check the history of HEAD; returns how many commits were looked at and the commit of each seal.

    Raises VerificationFailed if a manifest of the lineage was never committed, or before the one it amends,
    if a commit that touches records/ does not come after the last, or if a ledger committed since the first
    is no byte prefix of the present one; WrongState outside a repository or in one whose history is cut.
    """
    repo = Repo.find(paths.root)
    repo.refuse_partial_history()
    commits = _seal_commits(repo, paths, lineage)
    first, last = commits[0], commits[-1]
    after = repo.descendants(last)
    looked = len(commits)
    for commit in repo.commits_touching(paths.records):
        looked += 1
        if commit not in after:
            raise VerificationFailed(
                f"commit {commit[:12]} touches records/ and does not come after the seal's {last[:12]}",
                where="records/",
            )
    since = repo.descendants(first)
    for commit in repo.commits_touching(paths.ledger):
        if commit != first and commit not in since:
            continue
        looked += 1
        committed = repo.blob_at(commit, paths.ledger)
        if committed is None or not ledger.startswith(committed):
            raise VerificationFailed(
                f"commit {commit[:12]} holds a ledger that the present one does not continue",
                where="ledger.jsonl",
                next_step=f"git diff {commit[:12]} -- {paths.ledger}",
            )
    return looked, commits


def _seal_commits(repo: Repo, paths: StudyPaths, lineage: Sequence[Sealed]) -> tuple[str, ...]:
    found: list[str] = []
    for one in lineage:
        commit = seal_commit(repo, paths, one.data)
        if commit is None:
            raise VerificationFailed(
                "no commit in the history of HEAD holds this manifest",
                where=one.where,
                next_step=f"git log --all -- {paths.manifest}",
            )
        if found and not repo.is_ancestor(found[-1], commit):
            raise VerificationFailed(
                f"commit {commit[:12]} does not come after {found[-1][:12]}, of the seal that it amends",
                where=one.where,
            )
        found.append(commit)
    if len(lineage) > 1:
        editions = [
            _edition(repo.blob_at(commit, paths.protocol), one)
            for one, commit in zip(lineage, found, strict=True)
        ]
        for one, edition in zip(lineage, editions, strict=True):
            if edition != editions[-1]:
                raise VerificationFailed("is of another edition than the present seal", where=one.where)
    return tuple(found)


def _edition(data: bytes | None, one: Sealed) -> object:
    """The edition of the protocol that a seal of the lineage bound, by the commit that holds both."""
    sealed = {file.path: file.sha256 for file in one.manifest.files}
    if data is None or digest(data) != sealed.get("protocol.json"):
        raise VerificationFailed("its commit does not hold its protocol.json as sealed", where=one.where)
    value = loads(data, where=f"protocol.json of {one.where}")
    return value.get("edition") if isinstance(value, dict) else None


def check_handovers(
    paths: StudyPaths,
    *,
    sealed: str,
    study: str,
    entries: Sequence[Entry],
    lines: Sequence[str],
    trust: Trust,
) -> int:
    """Check every committed head since the seal, and that each hand-over between actors was signed.

    The present head is signed by the last actor only. What an earlier actor entered is bound to their key by
    the head that they committed: without one, the next actor could have written both parts. Returns how many
    heads were checked. Raises VerificationFailed, naming the commit or the entry.
    """
    repo = Repo.find(paths.root)
    after = repo.descendants(sealed) | {sealed}
    signed: set[int] = set()
    commits = [c for c in repo.commits_touching(paths.head) if c in after]
    for commit in commits:
        data, signature = repo.blob_at(commit, paths.head), repo.blob_at(commit, paths.head_signature)
        if data is None or signature is None:
            raise VerificationFailed(f"commit {commit[:12]} has no signed head", where="ledger.head.json")
        try:
            signed.add(
                check_head(
                    data, signature, study=study, entries=entries, lines=lines, trust=trust, behind=True
                )
            )
        except PreregError as error:
            raise VerificationFailed(
                f"in commit {commit[:12]}: {error.what}", where=error.where or "ledger.head.json"
            ) from None
    for one, two in itertools.pairwise(entries):
        if one.actor != two.actor and one.seq not in signed:
            raise VerificationFailed(
                f"entry {one.seq} is {one.actor}'s and entry {two.seq} {two.actor}'s, but no commit holds a "
                f"head of entry {one.seq} signed by {one.actor}",
                where=f"ledger.jsonl:{one.seq}",
            )
    return len(commits)


def seal_commit(repo: Repo, paths: StudyPaths, manifest: bytes) -> str | None:
    """The first commit of HEAD's history that holds these manifest bytes, or None."""
    for commit in repo.commits_touching(paths.manifest):
        if repo.blob_at(commit, paths.manifest) == manifest:
            return commit
    return None
