"""What goes where: JSON for programs on stdout, tables and progress for people on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prereg.cli.next_step import Given
from prereg.cli.streams import put_out
from prereg.model.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console

_named: list[Path] = []
_given: list[Given] = []


def study_named() -> Path | None:
    """The study's folder as the command line has it, or None."""
    return _named[-1] if _named else None


def _name(folder: Path) -> Path:
    from prereg.store.foreign import refuse_long_ids

    _named.append(folder)
    refuse_long_ids(folder)
    return folder


def key_given() -> Given | None:
    """The key of the command line and the verb that it was given to, or None."""
    return _given[-1] if _given else None


def take_key(context: typer.Context, key: str | None) -> str | None:
    """Remember the key, so that a next step can name it."""
    if key is not None:
        _given.append(Given(verb=context.info_name or "", key=key))
    return key


StudyDir = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="The study's folder, such as studies/mine.", callback=_name),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout for programs.")]
KEY_HELP = (
    "Your OpenSSH private key, also that of a hardware token, or a key of your ssh-agent: its .pub file, or "
    "agent:SHA256:… (or set PREREG_KEY)."
)
KeyFile = Annotated[
    str, typer.Option("--key", envvar="PREREG_KEY", help=KEY_HELP, metavar="KEY", callback=take_key)
]
Principal = Annotated[
    str | None,
    typer.Option("--as", help="Your principal in trust/allowed_signers; found by the key if left out."),
]

COLOURS = {
    "FAILS": "bold red",
    "DIFFERS": "bold red",
    "DEPARTS": "bold red",
    "EQUAL_WITHIN_TOLERANCE": "cyan",
    "NOT_REJECTED": "cyan",
    "INCONCLUSIVE": "yellow",
    "VOID": "yellow",
    "INVALID": "yellow",
    "HELD": "cyan",
    "FAILED": "bold red",
    "NOT_DETERMINED": "yellow",
    "ok": "green",
    "failed": "bold red",
    "not-checked": "yellow",
    "AGREES": "bold green",
    "DISAGREES": "bold red",
    "INCOMPLETE": "yellow",
    "COMPATIBLE": "cyan",
    "NOT_COMPATIBLE": "bold red",
    "MATCHES": "cyan",
}


def console() -> Console:
    """The console for people, on stderr; a file or a pipe gets wide lines, since nobody can widen it.

    Text that it is given is shown, never obeyed by the terminal.
    """
    from rich.console import Console

    class Shown(Console):
        def print(self, *objects: Any, **rest: Any) -> None:
            super().print(*(visible(one) if isinstance(one, str) else one for one in objects), **rest)

    width = None if sys.stderr.isatty() or "COLUMNS" in os.environ else 132
    return Shown(stderr=True, highlight=False, soft_wrap=False, width=width)


_EMITTED: list[bool] = []


def emitted() -> bool:
    """Whether this process has printed its JSON object: a failure after it must not print another."""
    return bool(_EMITTED)


def emit(value: Any) -> None:
    """One JSON object on stdout. Raises EvidenceIncomplete if stdout is closed or full."""
    _EMITTED.append(True)
    put_out(visible_json(json.dumps(value, ensure_ascii=False, sort_keys=True)) + "\n")


def say(text: str, *, whole: bool = False) -> None:
    """One line for people. Markup is not interpreted; `whole` leaves it to the terminal to break it."""
    console().print(text, markup=False, soft_wrap=whole)


def told(text: str) -> str:
    """Text of people for the end of a line: its further lines are set in, so that none looks like ours."""
    return text.replace("\n", "\n" + " " * 15)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for people; known verdicts and statuses get their colour."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=visible(title), title_justify="left", header_style="bold")
    texts = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    for i, column in enumerate(columns):
        # Words such as a verdict stay whole; only long text wraps.
        grid.add_column(column, overflow="fold", no_wrap=all(len(cells[i]) <= 22 for cells in texts))
    for cells in texts:
        grid.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in cells))
    console().print(grid)


def witness_draws(witnesses: Iterable[tuple[object, int]]) -> int:
    """Draws that are witnesses, from (outcome, count) pairs: one that breaks two rules is one draw."""
    return sum({json.dumps(outcome, sort_keys=True, default=repr): n for outcome, n in witnesses}.values())


def short(digest: str | None) -> str:
    """The first twelve digits of a digest, for people."""
    return "-" if digest is None else digest[:12]


def number(value: float | int | None) -> str:
    """A number for people: four decimals, thousands marked."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.2e}"
