"""The git repository around a study: what was committed, when, and in what order.

How git is called stands in `prereg.store.git`: no hooks, no line-end conversion. No call here lets git read a
file of the work tree through a filter. What is committed is therefore what lies on disk, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prereg.errors import VerificationFailed, WrongState
from prereg.store.foreign import DUBIOUS, not_ours, refuse_long_ids, safe, top_above
from prereg.store.git import Result, clean_environment, library, run
from prereg.store.stale import remove_stale

_ATTEMPTS = 20
"""Tries to get git's own index or reference lock before giving up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """An annotated tag."""

    name: str
    target: str
    """The commit it names, 40 hex digits."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """One repository; `top` is its work tree, absolute and free of links."""

    top: Path
    git_folder: Path
    """Where this work tree keeps its index and HEAD."""
    common_folder: Path
    """What all work trees of the repository share."""
    _git: Any = field(repr=False)
    foreign: bool = False
    """Whether the folder belongs to another user: such a repository is read and never written."""

    @staticmethod
    def find(path: Path) -> Repo:
        """The repository whose work tree holds `path`.

        Raises WrongState if there is none, or one whose ids this tool's formats cannot hold, and
        EvidenceIncomplete if git will not read it because it belongs to another user.
        """
        folder = path if path.is_dir() else path.parent
        git = library()
        command = git.cmd.Git(str(folder))
        asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"]
        raw = run(command, asked)
        trusted: dict[str, str] = {}
        if raw.status != 0 and DUBIOUS in raw.error and (place := top_above(folder)) is not None:
            # git distrusts what the settings of another user could make it run. What is called here runs
            # nothing that a repository names (`prereg.store.git`), whoever owns it: only reading goes on.
            trusted = safe(place)
            command.update_environment(**trusted)
            raw = run(command, asked)
        if raw.status != 0:
            reason = raw.error.splitlines()[0] if raw.error else "git rev-parse failed"
            if DUBIOUS in reason:
                raise not_ours(top_above(folder) or folder.resolve())
            raise WrongState(f"not in a git work tree ({reason})", where=str(path), next_step="git init")
        lines = raw.text.split("\n")
        if len(lines) != 4:
            raise WrongState("its path holds a line break; git cannot name it", where=repr(str(path)))
        top, own, common = lines[:3]
        refuse_long_ids(Path(top))
        inside = git.cmd.Git(top)
        inside.update_environment(**trusted)
        return Repo(
            top=Path(top),
            git_folder=Path(own),
            common_folder=(folder / common).resolve(),
            _git=inside,
            foreign=bool(trusted),
        )

    @staticmethod
    def create(folder: Path) -> Repo:
        """A new, empty repository in an existing folder."""
        with clean_environment():
            import git

            command = git.cmd.Git(str(folder))
        raw = run(command, ["init", "--quiet", "--initial-branch=main"])
        if raw.status != 0:
            raise WrongState(f"git init failed: {raw.error.strip()}", where=str(folder))
        return Repo.find(folder)

    def relative(self, path: Path) -> str:
        """`path` as git names it. Raises WrongState if it lies outside the work tree."""
        try:
            # A folder may be reached through a link; a file itself is never resolved.
            whole = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
            return whole.relative_to(self.top).as_posix()
        except ValueError:
            raise WrongState("lies outside the repository", where=str(path)) from None

    def call(self, arguments: list[str], *, transports: bool = False) -> Result:
        """Run git in this repository; `transports` lets it talk to others. Raises nothing for its status.

        Raises EvidenceIncomplete for transports in another user's repository: its settings name programs.
        """
        if transports:
            self._refuse_foreign()
        return run(self._git, arguments, transports=transports)

    # -- asking -------------------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The commit of HEAD, or None in a repository without commits."""
        raw = run(self._git, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        return raw.text.strip() if raw.status == 0 else None

    def branch(self) -> str:
        """The full name of the branch that HEAD is on. Raises WrongState where it is on none."""
        raw = run(self._git, ["symbolic-ref", "--quiet", "HEAD"])
        if raw.status != 0:
            what = "HEAD is on no branch: what is committed now is lost at the next checkout"
            raise WrongState(what, where=str(self.top), next_step="git switch -c BRANCH")
        return raw.text.strip()

    def refuse_partial_history(self) -> None:
        """Raise WrongState where history is cut or rewritten locally: shallow clones and grafts."""
        if self.is_shallow():
            raise WrongState(
                "is a shallow clone: it cannot prove an order of commits",
                where=str(self.top),
                next_step="git fetch --unshallow",
            )
        partial = run(
            self._git, ["config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"]
        )
        if partial.text.strip():
            raise WrongState(
                "is a partial clone: parts of its history are elsewhere",
                where=str(self.top),
                next_step="git fetch --refetch, and clone without --filter",
            )
        grafts = self.common_folder / "info" / "grafts"
        if grafts.exists() and grafts.read_bytes().strip():
            raise WrongState("grafts rewrite its history", where=str(grafts), next_step=f"rm {grafts}")

    def is_shallow(self) -> bool:
        """Whether commits are missing from the history."""
        return self._text(["rev-parse", "--is-shallow-repository"]).strip() == "true"

    def has_submodules_in(self, paths: Iterable[Path]) -> list[str]:
        """The submodules (index entries of mode 160000) at or under `paths`."""
        found = self._text(["ls-files", "--stage", "-z", "--", *self._specs(paths)])
        return [line.split("\t", 1)[1] for line in _zero(found) if line.startswith("160000 ")]

    def dirty_paths(self, under: Path) -> list[str]:
        """Files of HEAD under `under` that differ from it now: modified, staged or removed.

        The bytes on disk are hashed here; `git status` would run the filters that a repository names.
        """
        head = self.head()
        if head is None:
            return []
        out = self._text(["ls-files", "--stage", "-z", "--", *self._specs([under])])
        staged = {name: told.split(" ") for told, _, name in (line.partition("\t") for line in _zero(out))}
        return [
            name
            for name, (mode, blob) in self.blobs_at(head, under).items()
            if staged.get(name) != [mode, blob, "0"] or not _is_file(self.top / name, mode, blob)
        ]

    def tracked(self, under: Path) -> set[str]:
        """The files under `under` that the index holds, relative to the work tree."""
        return set(_zero(self._text(["ls-files", "-z", "--", *self._specs([under])])))

    def ignored(self, paths: Iterable[Path]) -> list[str]:
        """Those of `paths` that an ignore rule covers and the index does not hold."""
        names = "".join(f"{self.relative(p)}\0" for p in paths)
        raw = run(self._git, ["check-ignore", "--stdin", "-z"], stdin=os.fsencode(names))
        return _zero(raw.text)

    def commits_touching(self, path: Path) -> list[str]:
        """Commits of HEAD's history that change `path` against some parent, oldest first.

        The whole history is walked, so that a merge cannot hide a side branch.
        """
        if self.head() is None:
            return []
        arguments = ["rev-list", "--full-history", "--topo-order", "--reverse", "HEAD", "--"]
        return self._text([*arguments, *self._specs([path])]).split()

    def descendants(self, commit: str) -> set[str]:
        """The commits of HEAD's history after `commit`, in the sense of ancestry, without itself."""
        return set(self._text(["rev-list", "--ancestry-path", f"{commit}..HEAD"]).split())

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `older` is `newer` or one of its ancestors."""
        return run(self._git, ["merge-base", "--is-ancestor", older, newer]).status == 0

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit."""
        return self._text(["rev-list", "--parents", "-n", "1", commit]).split()[1:]

    def blob_at(self, commit: str, path: Path) -> bytes | None:
        """The bytes of `path` in `commit`, or None if it is not there or no file."""
        raw = run(self._git, ["cat-file", "blob", f"{commit}:{self.relative(path)}"])
        return raw.output if raw.status == 0 else None

    def blobs_at(self, commit: str, under: Path) -> dict[str, tuple[str, str]]:
        """Mode and blob id of everything under `under` in `commit`, by path relative to the work tree."""
        out = self._text(["ls-tree", "-r", "-z", "--full-tree", commit, "--", *self._specs([under])])
        found = {}
        for line in _zero(out):
            mode, _, rest = line.partition(" ")
            found[rest.split("\t", 1)[1]] = (mode, rest.split(" ")[1].split("\t")[0])
        return found

    @staticmethod
    def blob_id(data: bytes, *, like: str) -> str:
        """The id that git gives to these bytes, in the hash of the id `like`."""
        kind = hashlib.sha1 if len(like) == 40 else hashlib.sha256
        return kind(b"blob %d\0" % len(data) + data).hexdigest()

    def tag(self, name: str) -> Tag | None:
        """The annotated tag of that name, or None."""
        raw = run(self._git, ["cat-file", "tag", f"refs/tags/{name}"])
        if raw.status != 0:
            return None
        target = self._text(["rev-parse", "--verify", f"refs/tags/{name}^{{commit}}"]).strip()
        return Tag(name=name, target=target, message=raw.text.split("\n\n", 1)[-1])

    def tags_under(self, prefix: str) -> dict[str, str | None]:
        """The tags whose names begin with `prefix`, and the commit of each; None where it names no commit."""
        out = self._text(["for-each-ref", "--format=%(refname:strip=2)", f"refs/tags/{prefix}"])
        found: dict[str, str | None] = {}
        for name in out.split():
            raw = run(self._git, ["rev-parse", "--verify", "--quiet", f"refs/tags/{name}^{{commit}}"])
            found[name] = raw.text.strip() if raw.status == 0 else None
        return found

    def object_of(self, name: str) -> str:
        """The object that a reference names, 40 hex digits; of an annotated tag it is the tag's own."""
        return self._text(["rev-parse", "--verify", name]).strip()

    def messages_since(self, commit: str) -> dict[str, str]:
        """The messages of `commit` and of the commits of HEAD's history after it, as their objects hold them.

        The objects are read, not what git shows of them: no setting of encoding, comments or trailers counts.
        """
        commits = sorted(self.descendants(commit) | {commit})
        raw = run(self._git, ["cat-file", "--batch"], stdin="".join(f"{c}\n" for c in commits).encode())
        found, at = {}, 0
        for name in commits:
            end = raw.output.find(b"\n", at)
            told = raw.output[at:end].split(b" ")
            if raw.status != 0 or told[:2] != [name.encode(), b"commit"]:
                raise WrongState(f"commit {name[:12]} cannot be read", where=str(self.top))
            at = end + 1 + int(told[2])
            body = raw.output[end + 1 : at].partition(b"\n\n")[2]
            found[name] = body.decode("utf-8", "surrogateescape")
            at += 1
        return found

    # -- writing ------------------------------------------------------------------------------------------

    def commit(
        self, paths: Iterable[Path], message: str, trailers: Mapping[str, str], *, principal: str
    ) -> str:
        """Commit exactly `paths` as they lie on disk, and return the commit.

        Folders stand for every file in them that is not ignored away by being absent: what is missing on disk
        is removed. Other staged changes stay staged and uncommitted. `principal` names the committer where
        git's configuration does not. Raises as `branch` does, and EvidenceIncomplete in another user's
        repository.
        """
        self._refuse_foreign()
        self.branch()
        old = self.head()
        lines = self._index_lines(paths)
        body = message.rstrip("\n") + "\n\n" + "".join(f"{k}: {v}\n" for k, v in trailers.items())
        identity = self.identity(principal)
        with tempfile.TemporaryDirectory(prefix="prereg-index-") as folder:
            own_index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._text(["read-tree", old] if old else ["read-tree", "--empty"], env=own_index)
            self._text(["update-index", "-z", "--index-info"], stdin=lines, env=own_index)
            tree = self._text(["write-tree"], env=own_index).strip()
        arguments = ["commit-tree", tree, *(["-p", old] if old else [])]
        made = self._text(arguments, stdin=body.encode(), env=identity).strip()
        subject = message.splitlines()[0]
        # The reference last: whatever fails before it leaves no commit behind.
        self._retry(["update-index", "-z", "--index-info"], stdin=lines)
        self._retry(["update-ref", "-m", f"commit: {subject}", "HEAD", made, old or "0" * len(made)])
        return made

    def annotate(self, name: str, commit: str, message: str, *, principal: str) -> None:
        """Make an annotated tag. Raises WrongState if the name is taken."""
        self._refuse_foreign()
        arguments = ["tag", "--annotate", "--cleanup=verbatim", "--file=-", name, commit]
        raw = run(self._git, arguments, stdin=message.encode(), env=self.identity(principal))
        if raw.status != 0:
            raise WrongState(f"the tag {name} cannot be made: {raw.error.strip()}", where=str(self.top))

    def identity(self, principal: str) -> dict[str, str]:
        """Author and committer: git's configuration, else the signer's principal."""
        name = run(self._git, ["config", "--get", "user.name"]).text.strip() or principal
        email = run(self._git, ["config", "--get", "user.email"]).text.strip()
        email = email or (principal if "@" in principal else f"{principal}@localhost")
        return {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", name), ("EMAIL", email))
        }

    def _index_lines(self, paths: Iterable[Path]) -> bytes:
        """What `update-index --index-info` reads: present files as they are, absent tracked ones removed."""
        present: dict[str, Path] = {}
        absent: set[str] = set()
        for path in paths:
            if path.is_symlink():
                raise VerificationFailed("is a link", where=str(path))
            files = [path] if not path.is_dir() else sorted(p for p in path.rglob("*") if not p.is_dir())
            for file in files:
                if file.is_symlink():
                    raise VerificationFailed("is a link", where=str(file))
                if file.exists():
                    present[self.relative(file)] = file
            absent |= self.tracked(path)
        absent -= present.keys()
        named = os.fsencode("".join(f"{file.absolute()}\n" for file in present.values()))
        ids = self._text(["hash-object", "-w", "--no-filters", "--stdin-paths"], stdin=named).split()
        lines = [
            f"{'100755' if file.stat().st_mode & 0o100 else '100644'} {blob}\t{name}\0"
            for (name, file), blob in zip(present.items(), ids, strict=True)
        ]
        lines += [f"0 {'0' * 40}\t{name}\0" for name in sorted(absent)]
        return os.fsencode("".join(lines))

    def _specs(self, paths: Iterable[Path]) -> list[str]:
        names = [self.relative(p) for p in paths]
        return [":(top)" if name == "." else f":(top,literal){name}" for name in names]

    def _text(
        self, arguments: list[str], *, stdin: bytes | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        raw = run(self._git, arguments, stdin=stdin, env=env)
        if raw.status != 0:
            raise WrongState(f"git {arguments[0]} failed: {raw.error.strip()}", where=str(self.top))
        return raw.text

    def _refuse_foreign(self) -> None:
        if self.foreign:
            raise not_ours(self.top)

    def _remove_stale_locks(self) -> bool:
        """Whether locks lay there that a killed git left; they are gone now."""
        branch = run(self._git, ["symbolic-ref", "--quiet", "HEAD"]).text.strip()
        locks = [self.git_folder / "index.lock", self.git_folder / "HEAD.lock"]
        if branch:
            locks.append(self.common_folder / f"{branch}.lock")
        return bool(remove_stale(locks, (self.top, self.git_folder, self.common_folder)))

    def _retry(self, arguments: list[str], *, stdin: bytes | None = None) -> None:
        for attempt in range(_ATTEMPTS):
            raw = run(self._git, arguments, stdin=stdin)
            if raw.status == 0:
                return
            if "lock" not in raw.error.lower():
                break
            time.sleep(0.1)
            if attempt == _ATTEMPTS - 2 and not self._remove_stale_locks():
                break
        raise WrongState(
            f"git {arguments[0]} failed: {raw.error.strip()}",
            where=str(self.top),
            next_step="run the command again once no other git program holds the repository",
        )


def _is_file(file: Path, mode: str, blob: str) -> bool:
    """Whether a plain file lies there with these bytes, executable or not as that mode says."""
    if file.is_symlink() or not file.is_file():
        return False
    same = bool(file.stat().st_mode & 0o100) == (mode == "100755")
    return same and Repo.blob_id(file.read_bytes(), like=blob) == blob


def _zero(text: str) -> list[str]:
    return [line for line in text.split("\0") if line]
