"""Which trust/ a key is entered in: that of the repository around the folder where the command is typed."""

from __future__ import annotations

from pathlib import Path

from prereg.errors import WrongState

_STUDY = ("protocol.json", "ledger.jsonl")


def trust_place(given: Path | None) -> Path:
    """The folder whose trust/ is meant: `given`, or that of the repository around the current folder.

    Raises WrongState outside of a git repository: a trust/ that is in none is nobody's.
    """
    if given is not None:
        return given
    here = Path.cwd()
    found = _around(here)
    if found is None:
        raise WrongState(
            "who may sign stands in trust/ of a git repository, and this folder is in none",
            where=str(here),
            next_step="git init; or, where the repository is another, the same with --repository FOLDER",
        )
    return found


def trust_to_read(given: Path | None) -> Path:
    """As `trust_place`, to look at: a copy without its history may be looked at as well."""
    return given if given is not None else _around(Path.cwd()) or Path.cwd()


def told_place(place: Path) -> str:
    """trust/ as it is told to people: by its path unless it lies in the current folder."""
    return "trust/" if place.resolve() == Path.cwd() else str(place / "trust")


def _around(here: Path) -> Path | None:
    """The folder with trust/ for whoever is in `here`; None where no git repository is around it.

    That of a study is the one above studies/, as for every other verb, also where git's begins further up.
    """
    from prereg.store.foreign import top_above

    top = top_above(here)
    if top is None:
        return None
    for folder in (here, *here.parents):
        if folder == top:
            return top
        if any((folder / name).exists() for name in _STUDY):
            return folder.parent.parent if folder.parent.parent.is_relative_to(top) else top
        if (folder / "trust" / "allowed_signers").exists():
            return folder
    return top
