"""Another repository: what is pushed there, and what it says it holds afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prereg.errors import VerificationFailed, WrongState
from prereg.store.repo import Repo

_SCP = re.compile(r"[^/:]*@([^/]+:.*)", re.DOTALL)
"""`user@host:path`, as ssh and git write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A repository to push to."""

    name: str
    """As the user named it: a remote of git's configuration, or an address."""
    url: str
    """Where pushes go, as git is told; it may hold a password."""

    @property
    def shown(self) -> str:
        """The name that the user gave, without a password."""
        return public_url(self.name)

    @property
    def public(self) -> str:
        """The address without user or password."""
        return public_url(self.url)


def find_remote(repo: Repo, name: str) -> Remote:
    """The remote of that name, or the address itself. Raises WrongState where there is none."""
    missing = WrongState(
        f"there is no remote {name!r}", where=str(repo.top), next_step=f"git remote add {name} URL"
    )
    if not name or name.startswith("-"):
        raise missing
    known = repo.call(["remote", "get-url", "--push", "--", name])
    if known.status == 0:
        return Remote(name=name, url=known.text.rstrip("\n").split("\n")[0])
    if ":" not in name and not Path(name).is_dir():
        raise missing
    return Remote(name=name, url=name if ":" in name else str(Path(name).absolute()))


def current_branch(repo: Repo) -> str:
    """The full name of the branch that HEAD is on. Raises WrongState where it is on none."""
    found = repo.call(["symbolic-ref", "--quiet", "HEAD"])
    if found.status != 0:
        raise WrongState("HEAD is on no branch", where=str(repo.top), next_step="git switch -c BRANCH")
    return found.text.strip()


def push(repo: Repo, remote: Remote, wanted: Mapping[str, str]) -> None:
    """Push objects to references of the remote, and read the references back.

    `wanted` has an object, 40 hex digits, for each full name of a reference. Nothing is forced. Raises
    WrongState where git or the remote refuses, VerificationFailed where the remote then says otherwise.
    """
    options = ["--porcelain", "--no-follow-tags", "--no-signed", "--recurse-submodules=no"]
    specs = [f"{object_}:{name}" for name, object_ in wanted.items()]
    done = repo.call(["push", *options, "--", remote.url, *specs], transports=True)
    if done.status != 0:
        raise _refused(remote, f"{done.text}\n{done.error}")
    asked = repo.call(["ls-remote", "--", remote.url, *wanted], transports=True)
    if asked.status != 0:
        raise _refused(remote, asked.error)
    held = {name: object_ for object_, _, name in (line.partition("\t") for line in asked.text.splitlines())}
    for name, object_ in wanted.items():
        if held.get(name) != object_:
            raise VerificationFailed(
                f"says that {name} is {held.get(name, 'not there')[:40]}; {object_} was pushed",
                where=remote.public,
            )


def public_url(url: str) -> str:
    """An address without user and password."""
    scheme, separator, rest = url.partition("://")
    if separator:
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    match = _SCP.fullmatch(url)
    return url if match is None else match[1]


def _refused(remote: Remote, said: str) -> WrongState:
    """What git said of a push or a question that failed, without the password."""
    said = said.replace(remote.url, remote.public)
    if "non-fast-forward" in said or "fetch first" in said:
        return WrongState(
            "has commits that are not here: this would be no fast-forward",
            where=remote.public,
            next_step=f"git pull --no-rebase {remote.shown}",
        )
    if "already exists" in said:
        step = f"git ls-remote --tags {remote.shown}"
        return WrongState("has another tag of that name", where=remote.public, next_step=step)
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:", "remote:", "!"))]
    return WrongState(
        f"git refuses: {'; '.join(lines[:3])[:500] or 'no reason given'}",
        where=remote.public,
        next_step=f"git ls-remote {remote.shown}",
    )
