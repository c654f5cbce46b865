"""Another repository: what is pushed there, and what it says it holds afterwards."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prereg.errors import VerificationFailed, WrongState
from prereg.store.repo import Repo

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@(.*)", re.DOTALL)
"""An address with a scheme and a user (docs/formats.md section 19)."""
_SCP = re.compile(r"[^/:]*@([^/:]*:.*)", re.DOTALL)
"""`user@host:path`, as ssh and git write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A repository to push to."""

    name: str
    """As the user named it: a remote of git's configuration, or an address."""
    url: str
    """Where pushes go once git's settings have led on from the name; it may hold a password."""

    @property
    def shown(self) -> str:
        """The name that the user gave, without a password."""
        return public_url(self.name)

    @property
    def public(self) -> str:
        """The address without user or password."""
        return public_url(self.url)


def find_remote(repo: Repo, name: str) -> Remote:
    """The remote of that name, or the address itself, once `insteadOf` and `pushInsteadOf` were applied.

    Raises WrongState where there is none, or where these settings would lead on from there once more: what is
    entered must be the place that was pushed to and asked.
    """
    missing = WrongState(
        f"there is no remote {name!r}", where=str(repo.top), next_step=f"git remote add {name} URL"
    )
    if not name or name.startswith("-"):
        raise missing
    url = _named(repo, name)
    if url is None:
        if ":" not in name and not Path(name).is_dir():
            raise missing
        url = _push_address(repo, name if ":" in name else str(Path(name).absolute()))
    again = {_named(repo, url) or _push_address(repo, url), _asked_address(repo, url)} - {url}
    if again:
        raise WrongState(
            f"git's settings lead on from there to {public_url(again.pop())}",
            where=public_url(url),
            next_step="git config --show-origin --get-regexp '^(url|remote)[.]', and name the last address",
        )
    return Remote(name=name, url=url)


def _named(repo: Repo, name: str) -> str | None:
    """Where pushes to a remote of git's configuration go, its first address; None if there is none."""
    known = repo.call(["remote", "get-url", "--push", "--", name])
    return known.text.rstrip("\n").split("\n")[0] if known.status == 0 else None


def _push_address(repo: Repo, url: str) -> str:
    """Where git pushes that is told to push to this address; git itself says so for names alone."""
    told = repo.call(["config", "-z", "--get-regexp", r"^url\..*\.pushinsteadof$"]).text
    pairs = [line.partition("\n")[::2] for line in told.split("\0") if line]
    fitting = [(key, start) for key, start in pairs if start and url.startswith(start)]
    if not fitting:
        return _asked_address(repo, url)
    key, start = max(fitting, key=lambda pair: len(pair[1]))  # git too takes the longest, of these the first
    return key.removeprefix("url.").removesuffix(".pushinsteadof") + url.removeprefix(start)


def _asked_address(repo: Repo, url: str) -> str:
    """Where git asks that is told to ask this address."""
    known = repo.call(["ls-remote", "--get-url", "--", url])
    return known.text.rstrip("\n") if known.status == 0 else url


def push(repo: Repo, remote: Remote, wanted: Mapping[str, str]) -> None:
    """Push objects to references of the remote, and read the references back.

    `wanted` has an object, 40 hex digits, for each full name of a reference. Nothing is forced. Raises
    WrongState where git or the remote refuses, VerificationFailed where the remote then says otherwise.
    """
    options = ["--porcelain", "--no-follow-tags", "--no-signed", "--recurse-submodules=no"]
    specs = [f"{object_}:{name}" for name, object_ in wanted.items()]
    done = repo.call(["push", *options, "--", remote.url, *specs], transports=True)
    if done.status != 0:
        raise _refused(remote, f"{done.text}\n{done.error}", wanted)
    asked = repo.call(["ls-remote", "--", remote.url, *wanted], transports=True)
    if asked.status != 0:
        raise _refused(remote, asked.error, wanted)
    held = {name: object_ for object_, _, name in (line.partition("\t") for line in asked.text.splitlines())}
    for name, object_ in wanted.items():
        if held.get(name) != object_:
            raise VerificationFailed(
                f"says that {name} is {held.get(name, 'not there')[:40]}; {object_} was pushed",
                where=remote.public,
            )


def public_url(url: str) -> str:
    """An address without user and password."""
    if (match := _URL.fullmatch(url)) is not None:
        return match[1] + match[2]
    match = _SCP.fullmatch(url)
    return url if match is None else match[1]


def _refused(remote: Remote, said: str, wanted: Iterable[str]) -> WrongState:
    """What git said of a push or a question about these references that failed, without the password."""
    heads = [name.removeprefix("refs/heads/") for name in wanted if name.startswith("refs/heads/")]
    branch = shlex.quote(heads[0]) if heads else "HEAD"
    said = said.replace(remote.url, remote.public)
    if "non-fast-forward" in said or "fetch first" in said:
        return WrongState(
            "has commits that are not here: this would be no fast-forward",
            where=remote.public,
            # The branch is named: a remote that was just added is nobody's upstream yet.
            next_step=f"git pull --no-rebase {remote.shown} {branch}",
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
