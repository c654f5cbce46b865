"""The order proof by git history: seal first, records after, the ledger only growing (section 5)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from prereg.codec.canonical import digest, loads
from prereg.errors import PreregError, VerificationFailed
from prereg.model.seal import Entry
from prereg.seal.head import Attests, check_head
from prereg.seal.lineage import Sealed
from prereg.seal.manifest import WHERE
from prereg.seal.trust import Trust
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger
from prereg.store.repo import Repo


def check_order(
    paths: StudyPaths, *, lineage: Sequence[Sealed], ledger: bytes
) -> tuple[int, tuple[str, ...]]:
    """Check the history of HEAD; returns how many commits were looked at and the commit of each seal.

    Raises VerificationFailed if a manifest of the lineage was never committed, more than once, before the
    one it amends or the commit that it names, or after what followed its seal, if a commit that touches
    records/ does not come after the last, or if a ledger committed since the first is no byte prefix of the
    present one; WrongState outside a repository or in one whose history is cut.
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
        adding = _adding(repo, paths, one.data)
        if not adding:
            raise VerificationFailed(
                "no commit in the history of HEAD holds this manifest",
                where=one.where,
                next_step=f"git log --all -- {paths.manifest}",
            )
        if len(adding) > 1:
            raise VerificationFailed(
                f"is added by {len(adding)} commits, {adding[0][:12]} and {adding[1][:12]} among them",
                where=one.where,
                next_step=f"git log --full-history -- {paths.manifest}",
            )
        commit = adding[0]
        _refuse_foreign(repo, paths, one, commit)
        _refuse_later_entries(repo.blob_at(commit, paths.ledger), one, commit)
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


def _refuse_foreign(repo: Repo, paths: StudyPaths, one: Sealed, commit: str) -> None:
    """The manifest's own `commit`, HEAD when it was made, comes before the one that adds it."""
    said = one.manifest.commit
    if said is None:
        if repo.parents(commit):
            raise VerificationFailed(
                f"says that there was no commit, and commit {commit[:12]}, which adds it, has parents",
                where=f"{one.where}#/commit",
                next_step=f"git log -- {paths.manifest}",
            )
    elif said == commit or not repo.is_ancestor(said, commit):
        raise VerificationFailed(
            f"{said[:12]} is no ancestor of commit {commit[:12]}, which adds the manifest",
            where=f"{one.where}#/commit",
            next_step=f"git log -- {paths.manifest}",
        )


def _refuse_later_entries(ledger: bytes | None, one: Sealed, commit: str) -> None:
    """The commit that adds a seal was made before anything followed the seal."""
    last = None if ledger is None else read_ledger(ledger, where=f"ledger.jsonl of {commit[:12]}")[-1]
    if last is not None and (last.type not in ("sealed", "amended") or last.body["seal"] != one.seal):
        raise VerificationFailed(
            f"commit {commit[:12]} adds the seal, and its ledger already has later entries",
            where=one.where,
            next_step=f"git log --full-history -- {WHERE}",
        )


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
    attests: Attests | None = None,
) -> int:
    """Check every committed head since the seal, and that each hand-over between actors was signed.

    The present head is signed by the last actor only. What an earlier actor entered is bound to their key by
    the head that they committed: without one, the next actor could have written both parts. `attests` asks
    the stamps of heads. Returns how many heads were checked. Raises VerificationFailed, naming the commit or
    the entry.
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
                    data,
                    signature,
                    study=study,
                    entries=entries,
                    lines=lines,
                    trust=trust,
                    behind=True,
                    attests=attests,
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
    """The first commit of HEAD's history that adds these manifest bytes, or None."""
    return next(iter(_adding(repo, paths, manifest)), None)


def _adding(repo: Repo, paths: StudyPaths, manifest: bytes) -> list[str]:
    """The commits of HEAD's history that have these bytes as the manifest, and none of whose parents has."""

    def has(commit: str) -> bool:
        found = repo.blobs_at(commit, paths.manifest).get(repo.relative(paths.manifest))
        return found is not None and Repo.blob_id(manifest, like=found[1]) == found[1]

    return [
        commit
        for commit in repo.commits_touching(paths.manifest)
        if has(commit) and not any(has(parent) for parent in repo.parents(commit))
    ]
