"""Pushing a study, reading back what arrived, and entering that (section 19, `pushed`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from prereg.errors import PreregError, WrongState
from prereg.model.places import state
from prereg.model.seal import Entry
from prereg.seal.enter import admit, enter
from prereg.seal.finish import is_committed
from prereg.seal.keys import SigningKey
from prereg.seal.verified import VerifiedStudy
from prereg.store.files import read_once
from prereg.store.layout import StudyPaths
from prereg.store.ledger import read_ledger
from prereg.store.remote import Remote, find_remote, push
from prereg.store.repo import Repo


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A study that lies at a remote, its entry of that included."""

    remote: str
    """The remote's address, without user or password."""
    ref: str
    commit: str
    """What the remote holds now."""
    entry: Entry
    """What the ledger says of it; the commit there is the one before the entry's own."""
    tags: tuple[str, ...]


def push_study(paths: StudyPaths, remote: str, *, key: SigningKey, principal: str) -> Pushed:
    """Push the current branch and the study's tags, read them back, enter it, and push the entry too.

    Where the last entry says already that the study was pushed there, only what came after is pushed, and
    nothing is entered. A failure leaves the study as it is. Raises WrongState where there is no such remote,
    where it refuses, or where `enter` refuses; VerificationFailed where it holds something else afterwards.
    """
    repo = Repo.find(paths.root)
    target = find_remote(repo, remote)
    ref = repo.branch()
    try:
        verified = admit(paths, "pushed", key=key, principal=principal)
    except WrongState as error:
        if not _only_unsent(paths, repo, target, ref):
            raise
        step = f"git push --follow-tags {quote(target.shown)} HEAD"
        raise WrongState(error.what, where=error.where, next_step=step) from None
    study, last = verified.manifest.study, verified.entries[-1]
    if is_committed(paths) and (last.type, last.body.get("remote"), last.body.get("ref")) == (
        "pushed",
        target.public,
        ref,
    ):
        return _arrived(paths, repo, target, ref, study, last)
    if last.type != "pushed" and not is_committed(paths):
        raise WrongState(
            "its last entry is not committed",
            where=str(paths.ledger),
            next_step=f"git commit -- {paths.root}",
        )
    commit = _push(paths, repo, target, ref, study)

    def body(verified: VerifiedStudy) -> Mapping[str, Any]:
        return {"seal": verified.seal, "remote": target.public, "ref": ref, "commit": commit}

    entry, _ = enter(
        paths, "pushed", body, key=key, principal=principal, message=f"Push study {study}: its entry"
    )
    return _arrived(paths, repo, target, ref, study, entry)


def refuse_remote(paths: StudyPaths, remote: str) -> None:
    """Raise WrongState where nothing can be pushed: there is no such remote, or HEAD is on no branch."""
    repo = Repo.find(paths.root)
    find_remote(repo, remote)
    repo.branch()


def _only_unsent(paths: StudyPaths, repo: Repo, target: Remote, ref: str) -> bool:
    """Whether the study is closed and committed, and the remote, by what was last heard of it, lacks HEAD.

    No entry can follow the last one, so that what sends it is git alone.
    """
    if state(read_ledger(read_once(paths.ledger))) != "closed" or not is_committed(paths):
        return False
    seen = repo.call(["rev-parse", f"refs/remotes/{target.name}/{ref.removeprefix('refs/heads/')}"])
    return seen.status != 0 or seen.text.strip() != repo.head()


def _arrived(paths: StudyPaths, repo: Repo, target: Remote, ref: str, study: str, entry: Entry) -> Pushed:
    commit = _push(paths, repo, target, ref, study)
    return Pushed(
        remote=target.public,
        ref=ref,
        commit=commit,
        entry=entry,
        tags=tuple(repo.tags_under(f"prereg/{study}/")),
    )


def _push(paths: StudyPaths, repo: Repo, target: Remote, ref: str, study: str) -> str:
    """Push HEAD and the study's tags, and read them back; returns the commit."""
    commit = repo.head()
    assert commit is not None  # a sealed study is committed
    tags = {
        f"refs/tags/{name}": repo.object_of(f"refs/tags/{name}")
        for name in repo.tags_under(f"prereg/{study}/")
    }
    try:
        push(repo, target, {ref: commit, **tags})
    except PreregError as error:
        again = f"prereg push {paths.root} --remote {target.shown}"
        step = again if error.next_step is None else f"{error.next_step}, then {again}"
        raise type(error)(error.what, where=error.where, next_step=step) from None
    return commit
