"""The next step of an error as it can be typed: with the study's folder, and a key where one is needed."""

from __future__ import annotations

import re
from pathlib import Path

from prereg.errors import PreregError

SIGNING = "seal|amend|cosign|timestamp|collect|analyse|audit|deviate|relocate|push|close"
_SIGNING = re.compile(rf"(prereg (?:{SIGNING}) (?!--help\b)[^\s,;)]+)(?![^,;)]*--(?:key|head|help)\b)")
_GIT = r"git (?:checkout(?: HEAD)? --|log -p --|diff HEAD --|add)"
_FILE = re.compile(rf"((?:{_GIT}|\brm(?: -r)?|\bchmod (?:644|755)) )(?!-)([^\s,;)]+)")


def typed(step: str, folder: Path | None) -> str:
    """`step` for a verb that was given `folder`.

    The layers below speak of DIR, and name files relative to the study; here the folder is known.
    """
    if folder is not None:
        step = re.sub(r"\bDIR\b", lambda _: str(folder), step)
        step = _FILE.sub(lambda found: found[1] + _placed(found[2], folder), step)
    return _SIGNING.sub(r"\1 --key KEY", step)


def error_value(error: PreregError | None, folder: Path) -> dict[str, object] | None:
    """An error beside a result, for `--json`: its next step can be typed too."""
    if error is None:
        return None
    step = None if error.next_step is None else typed(error.next_step, folder)
    return {**error.as_json(), "next": step}


def _placed(name: str, folder: Path) -> str:
    """A file of the study by its path from here; trust/ is the repository's."""
    if name.startswith("'"):
        return name  # a whole path that was quoted for the shell
    if Path(name).is_absolute() or Path(name).is_relative_to(folder):
        return name
    if name.split("/")[0] == "trust":
        return str(folder.resolve().parent.parent / name)
    return str(folder / name)
