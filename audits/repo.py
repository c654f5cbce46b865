"""Reads a git repository through the `git` program, as plain objects and nothing else.

No variable of the caller's environment reaches git, no hook, helper or transport of the repository runs,
nothing is fetched, and replaced, grafted or partial history is refused.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from audits.__main__ import is_shortage
from audits.fault import Fault, reason
from audits.given import real
from audits.load import LARGE, sha256

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.commitGraph=false",
    "core.pager=cat",
    "core.quotePath=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "log.showSignature=false",
    "safe.directory=*",
)
_PARTIAL = r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$"
"""The settings, as git spells them, of a repository that leaves objects to be fetched when needed."""
_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
PATIENCE, AT_FIRST = 600, 30
"""How many seconds a command of git may take, and the first one, which only looks whether a repository is
there: what git reads may be a pipe that a hostile setting names."""
_SHORTAGE = re.compile(
    r"(fatal|error): (Out of memory, .*|.*: (Cannot allocate memory|out of memory( \(.*\))?))"
)
"""How git says that memory ended. The whole line, since it may tell names that the author chose."""
_LOADER = "git: error while loading shared libraries: "


class NoHistory(Exception):
    """There is no git history to look at; the text says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between a commit and one of its parents (or nothing, for a first commit)."""

    commit: str
    parent: str
    path: str
    mode: str
    """The new mode; 000000 if the path was removed."""
    blob: str
    """The new object."""
    before: str
    """The old object; all zeros if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag."""

    commit: str | None
    """The commit it is on; None if it is on something else."""
    message: str
    """Its message with its signature, if any; empty for one that is a name alone."""


class Waits(Fault):
    """A command of git took longer than any does that has what it needs."""


def _message(data: bytes) -> str:
    """The message of a commit or tag; a byte that is not UTF-8 stays a lone surrogate."""
    return data.partition(b"\n\n")[2].decode("utf-8", "surrogateescape")


def _git(
    folder: Path,
    *arguments: str,
    feed: bytes = b"",
    fine: tuple[int, ...] = (0,),
    patience: float = PATIENCE,
) -> bytes:
    command = ["git", "--no-replace-objects", "--literal-pathspecs"]
    for setting in _SETTINGS:
        command += ["-c", setting]
    environment = _ENVIRONMENT | {"PATH": os.environ.get("PATH", os.defpath)}
    try:
        done = subprocess.run(
            [*command, *arguments],
            input=feed,
            capture_output=True,
            cwd=folder,
            env=environment,
            timeout=patience,
        )
    except FileNotFoundError:
        raise
    except subprocess.TimeoutExpired:
        raise Waits(f"git {arguments[0]} took more than {patience} seconds") from None
    except OSError as error:
        raise Fault(f"git {arguments[0]} cannot be run: {reason(error)}") from None
    if done.returncode not in fine:
        lines = done.stderr.decode("utf-8", "replace").strip().split("\n")
        said = lines[0]
        # A system that has no memory left kills, and nothing in a repository makes git do that to itself.
        if done.returncode == -signal.SIGKILL or any(_is_short(line) for line in lines):
            raise MemoryError(said)
        raise Fault(f"git {arguments[0]} failed: {said or f'exit code {done.returncode}'}")
    return done.stdout


def _is_short(line: str) -> bool:
    """Whether git, or the loader of its libraries, says that memory ended."""
    if line.startswith(_LOADER):
        return is_shortage(ImportError(line))
    return _SHORTAGE.fullmatch(line) is not None


@contextmanager
def _whatever_else() -> Iterator[None]:
    """Pass over what the system refuses, unless it only had no memory left."""
    try:
        yield
    except OSError as error:
        if is_shortage(error):
            raise


def refuse_pipes(folder: Path) -> None:
    """Refuse a pipe or a device in the repository's own folder, on which git would wait without end.

    Raises ``Fault`` for it. Links to folders are not followed: what git waits for there, ``PATIENCE`` ends.
    """
    here = real(folder)
    home = next((place for one in (here, *here.parents) if os.path.lexists(place := one / ".git")), None)
    if home is None:
        return
    folders = [home]
    while folders:  # no recursion: they may lie deep
        items: list[os.DirEntry[str]] = []
        with _whatever_else(), os.scandir(folders.pop()) as listing:
            items += listing
        for item in items:
            if item.is_dir(follow_symlinks=False):
                folders.append(Path(item.path))
            else:
                _refuse_pipe(Path(item.path))


def _refuse_pipe(path: Path) -> None:
    with _whatever_else():  # a link to nothing, which git cannot open either
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise Fault("not a regular file: git would wait for it", file=str(path))


def head_file(folder: Path, path: str) -> bytes | None:
    """The bytes of a file below a folder in HEAD; None where HEAD has none, or where there is no history.

    Shallow and partial clones have a HEAD too, so that this asks less than ``Repository``.
    """
    refuse_pipes(folder)
    try:
        _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", patience=AT_FIRST)
    except Waits:
        raise
    except (Fault, FileNotFoundError):
        return None
    listed = _git(folder, "ls-tree", "-z", "HEAD", "--", path)
    if not listed:
        return None
    return _git(folder, "cat-file", "-p", listed.partition(b"\t")[0].split(b" ")[2].decode())


class Repository:
    """The repository a folder is in."""

    def __init__(self, folder: Path) -> None:
        """Raises ``NoHistory`` where there is no repository, and ``Fault`` for one that hides history."""
        self._folder = folder
        refuse_pipes(folder)
        try:
            # Asked one by one: the folder's name may have line ends.
            prefix, shallow, common = (
                _git(folder, "rev-parse", asked, patience=AT_FIRST)
                .decode("utf-8", "surrogateescape")
                .removesuffix("\n")
                for asked in ("--show-prefix", "--is-shallow-repository", "--git-common-dir")
            )
        except FileNotFoundError:
            raise NoHistory("the program git is not installed") from None
        except Waits:
            raise
        except Fault as fault:
            raise NoHistory(fault.what) from None
        self.prefix = prefix
        """The folder's path in the repository, with a final slash (empty for its root)."""
        if shallow != "false":
            raise Fault("the repository is a shallow clone", then="fetch all of it: git fetch --unshallow")
        if (folder / common / "info" / "grafts").exists():
            raise Fault("the repository has grafts", file=".git/info/grafts")
        settings = self._git("config", "-z", "--name-only", "--get-regexp", _PARTIAL, fine=(0, 1))
        if settings:
            name = settings.split(b"\0")[0].decode("utf-8", "replace")
            raise Fault(
                f"the repository is a partial clone: it has the setting {name}",
                file=".git/config",
                then="audit a full clone, made without --filter",
            )
        try:
            self._git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except Fault:
            raise NoHistory("the repository has no commit") from None

    def _git(self, *arguments: str, feed: bytes = b"", fine: tuple[int, ...] = (0,)) -> bytes:
        return _git(self._folder, *arguments, feed=feed, fine=fine)

    def parents(self) -> dict[str, tuple[str, ...]]:
        """Every commit of HEAD's history with its parents, parents before children."""
        lines = self._git("rev-list", "--topo-order", "--reverse", "--parents", "HEAD").decode().splitlines()
        return {commit: tuple(rest) for commit, *rest in (line.split() for line in lines)}

    def changes(self, parents: dict[str, tuple[str, ...]]) -> Iterator[Change]:
        """Every path of the folder that a commit changed against each of its parents, one by one."""
        pairs = [(c, parent) for c, several in parents.items() for parent in several or ("",)]
        feed = "".join(f"{commit} {parent}".rstrip() + "\n" for commit, parent in pairs).encode()
        flags = ("--stdin", "--root", "-r", "--raw", "--no-renames", "--no-abbrev", "--always", "-z")
        output = self._git("diff-tree", *flags, "--", ".", feed=feed)
        at = -1
        parts = iter(output.split(b"\0"))
        for part in parts:
            if part.startswith(b":"):
                _, mode, before, blob, _ = part.decode().split(" ")
                path = next(parts).decode("utf-8", "surrogateescape").removeprefix(self.prefix)
                yield Change(*pairs[at], path=path, mode=mode, blob=blob, before=before)
            elif part:
                at += 1
                if part.decode() != pairs[at][0]:
                    raise Fault("git diff-tree answered out of order")

    def tree(self, commit: str = "HEAD") -> dict[str, tuple[str, str]]:
        """The mode and object of every path of the folder in a commit."""
        where = ("--", self.prefix) if self.prefix else ()
        listing = self._git("ls-tree", "-r", "-z", "--full-tree", commit, *where)
        rows = (item.split(b"\t", 1) for item in listing.split(b"\0") if item)
        found = {}
        for info, path in rows:
            mode, _, blob = info.decode().split(" ")
            found[path.decode("utf-8", "surrogateescape").removeprefix(self.prefix)] = mode, blob
        return found

    def tags(self, prefix: str) -> dict[str, Tag]:
        """The tags whose names begin so."""
        listing = self._git(
            "for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", f"refs/tags/{prefix}"
        )
        found: dict[str, Tag] = {}
        for line in listing.decode("utf-8", "surrogateescape").splitlines():
            name, kind, ref = line.split(" ", 2)
            peeled = self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", fine=(0, 1, 128))
            message = _message(self._objects([name], "tag")[name]) if kind == "tag" else ""
            commit = peeled.decode().strip() or None
            found[ref.removeprefix("refs/tags/")] = Tag(commit=commit, message=message)
        return found

    def messages(self, commits: Iterable[str]) -> dict[str, str]:
        """The messages of commits."""
        return {name: _message(data) for name, data in self._objects(commits, "commit").items()}

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The bytes of files."""
        return self._objects(names, "blob")

    def digests(self, names: Iterable[str]) -> dict[str, str]:
        """The SHA-256 of files, of which no more are held at a time than one may have bytes."""
        found: dict[str, str] = {}
        group: list[str] = []
        held = 0
        for name, size in self._sizes(sorted(set(names)), "blob").items():
            if group and held + size > LARGE:
                found |= {one: sha256(data) for one, data in self.blobs(group).items()}
                group, held = [], 0
            group.append(name)
            held += size
        return found | {one: sha256(data) for one, data in self.blobs(group).items()}

    def _sizes(self, wanted: list[str], kind: str) -> dict[str, int]:
        """The sizes of objects of one kind; raises if one is longer than any file may be, or not there."""
        feed = "".join(f"{name}\n" for name in wanted).encode()
        lines = self._git("cat-file", "--batch-check", feed=feed).decode().splitlines()
        sizes: dict[str, int] = {}
        for name, line in zip(wanted, lines, strict=True):
            said = line.split(" ")[1:]
            if said[:1] != [kind]:
                raise Fault(f"git object {name} is {' '.join(said)}, not a {kind}")
            sizes[name] = int(said[1])
            if sizes[name] > LARGE:
                raise Fault(f"git object {name} is larger than the {LARGE} bytes it may have")
        return sizes

    def _objects(self, names: Iterable[str], kind: str) -> dict[str, bytes]:
        """The bytes of objects of one kind, none of which is read before it is known to be short enough."""
        wanted = sorted(set(names))
        self._sizes(wanted, kind)
        output = self._git("cat-file", "--batch", feed="".join(f"{name}\n" for name in wanted).encode())
        found, at = {}, 0
        for name in wanted:
            end = output.index(b"\n", at)
            header = output[at:end].decode().split(" ")
            if header[1:2] != [kind]:
                raise Fault(f"git object {name} is {' '.join(header[1:])}, not a {kind}")
            size = int(header[2])
            found[name] = output[end + 1 : end + 1 + size]
            at = end + size + 2
        return found
