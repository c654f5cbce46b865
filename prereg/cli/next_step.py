"""The next step of an error as it can be typed: whole paths, what a verb must be given, and the key."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from prereg.errors import PreregError

_QUOTED = r"'[^']*'(?:\"'\"'[^']*')*"
"""A word as `shlex.quote` writes it."""
_WORD = rf"(?:{_QUOTED}|[^\s,;)'\"]+)"
_ASKED = {
    "amend": (("--reason", "WHY"),),
    "close": (("--reason", "WHY"),),
    "deviate": (("--text", "WHAT"),),
    "draft": (("--template", "TEMPLATE"),),
    "relocate": (("--from", "PLACE"), ("--reason", "WHY")),
    "timestamp": (("--url", "URL"),),
    "key new": (("--principal", "NAME"), ("--role", "ROLE")),
    "key add": (("--principal", "NAME"), ("--role", "ROLE")),
    "key rotate": (("--to", "FILE"),),
    "key revoke": (("--reason", "REASON"), ("--note", "WHAT")),
}
"""What a verb does not run without, and the word that stands for it."""
_SIGNING = {"seal", "amend", "cosign", "timestamp", "collect", "analyse", "audit", "deviate"} | {
    "relocate",
    "push",
    "close",
}
_VERBS = "|".join(sorted(_SIGNING | _ASKED.keys(), key=len, reverse=True))
_COMMAND = re.compile(
    rf"(?P<who>\bruns )?\bprereg (?P<verb>{_VERBS}) (?P<place>(?!-){_WORD})"
    rf"(?P<rest>(?: --[a-z][a-z-]*(?: (?!-){_WORD})?)*)(?P<other>, (?:as|by) )?"
)
_OTHERS = ("audit", "cosign")
"""Verbs of another person than the one who ran the verb before."""
_OWN = re.compile(r"(prereg key add )KEY\.pub(?= --principal (?!NAME\b))")
_GIT = r"git (?:checkout(?: HEAD)? --|log -p --|diff HEAD --|add)"
_FILE = re.compile(rf"((?:{_GIT}|\brm(?: -r)?|\brmdir|\bchmod (?:644|755)) )(?!-r ){_WORD}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A key on the command line, and the verb that it was given to."""

    verb: str
    key: str


def typed(step: str, folder: Path | None, given: Given | None = None) -> str:
    """`step` for a verb that was given `folder`, and the key `given`; a step that is whole stays as it is.

    The layers below speak of DIR and KEY, and name files relative to the study; here both are known.
    """
    if folder is not None:
        step = _quoted_root(step, folder)
        step = re.sub(r"\bDIR\b", lambda _: shlex.quote(str(folder)), step)
        step = _FILE.sub(lambda found: found[1] + _placed(found[0][len(found[1]) :], folder), step)
    if given is not None and not given.key.startswith("agent:"):
        public = shlex.quote(given.key.removesuffix(".pub") + ".pub")
        step = _OWN.sub(lambda found: found[1] + public, step)
    return _COMMAND.sub(lambda found: _whole(found, given), step)


def error_value(
    error: PreregError | None, folder: Path, given: Given | None = None
) -> dict[str, object] | None:
    """An error beside a result, for `--json`: its next step can be typed too."""
    if error is None:
        return None
    step = None if error.next_step is None else typed(error.next_step, folder, given)
    return {**error.as_json(), "next": step}


def _whole(found: re.Match[str], given: Given | None) -> str:
    """A command with what it cannot do without."""
    verb, rest = found["verb"], found["rest"]
    options = set(re.findall(r"(?<= )--[a-z-]+", rest))
    if options & {"--help", "--head"} or (verb == "deviate" and "--file" in options):
        asked = ""
    else:
        asked = "".join(f" {name} {word}" for name, word in _ASKED.get(verb, ()) if name not in options)
    if verb in _SIGNING and not options & {"--help", "--head"}:
        mine = given is not None and not found["who"] and not found["other"] and _same(verb, given.verb)
        key = shlex.quote(given.key) if given is not None and mine else "KEY"
        rest = re.sub(r"(?<= --key )KEY\b", lambda _: key, rest)
        asked += "" if "--key" in options else f" --key {key}"
    return f"{found['who'] or ''}prereg {verb} {found['place']}{asked}{rest}{found['other'] or ''}"


def _same(verb: str, before: str) -> bool:
    """Whether the one who ran `before` is the one to run `verb`: a reviewer or a second signer is another."""
    return verb == before or not {verb, before} & set(_OTHERS)


def _placed(word: str, folder: Path) -> str:
    """A file of the study by its path from here, for the shell; what is a path from here already stays.

    Files of the repository beside the study are named by their whole path where the step is made.
    """
    name = shlex.split(word)[0] if word.startswith("'") else word
    path = Path(name)
    if not path.is_absolute() and (not path.is_relative_to(folder) or os.path.lexists(folder / path)):
        path = folder / path
    text = shlex.quote(str(path))
    return f"./{text}" if text.startswith("-") else text


def _quoted_root(step: str, folder: Path) -> str:
    """`step` with the study's own path in quotes, where the shell would read it otherwise."""
    root = str(folder.resolve())
    if shlex.quote(root) == root:
        return step
    either = re.compile(rf"{_QUOTED}|{re.escape(root)}")
    return either.sub(lambda found: found[0] if found[0].startswith("'") else shlex.quote(root), step)
