"""What the auditor says when something is wrong: what, where, and what next."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from audits.__main__ import is_shortage


class Fault(Exception):
    """One thing wrong with the evidence, said so that a reviewer can go and look at it."""

    def __init__(self, what: str, *, file: str = "", pointer: str = "", then: str = "") -> None:
        """``file`` and ``pointer`` (a JSON pointer) say where; ``then`` says what to do next."""
        super().__init__(what)
        self.what = what
        self.file = file
        self.pointer = pointer
        self.then = then

    def __str__(self) -> str:
        where = self.file + (f"#{self.pointer}" if self.pointer else "")
        return (f"{where}: " if where else "") + self.what + (f" ({self.then})" if self.then else "")

    def at(self, file: str, pointer: str = "") -> Fault:
        """The same fault with its place filled in, where it had none."""
        return Fault(self.what, file=self.file or file, pointer=self.pointer or pointer, then=self.then)


def reason(error: OSError) -> str:
    """Why the system refused something of the evidence; raises the error where it only had no memory left."""
    if is_shortage(error):
        raise error
    return error.strerror or str(error)


def writable(text: str) -> str:
    """The text as JSON may hold it: one that is not UTF-8 or not NFC, as a name can be, in escapes."""
    try:
        text.encode("utf-8")
        if unicodedata.is_normalized("NFC", text):
            return text
    except UnicodeEncodeError:
        pass
    return text.encode("ascii", "backslashreplace").decode("ascii")


class Unavailable(Exception):
    """A step cannot be evaluated: what it needs was not authenticated, or is not there yet."""


SHOWN = 8
"""How many faults and notes of one step are spelled out."""


@dataclass(slots=True)
class Found:
    """What one step found."""

    applied: int = 0
    """How many things the step looked at."""
    notes: list[str] = field(default_factory=list)
    """Remarks for the reviewer, none of them a failure."""
    faults: list[Fault] = field(default_factory=list)
    """Everything wrong, in the order found."""
    waiting: str = ""
    """Why the step was not checked, if it was not."""

    def fault(self, what: str, *, file: str = "", pointer: str = "", then: str = "") -> None:
        """Record one fault and go on."""
        self.faults.append(Fault(what, file=file, pointer=pointer, then=then))

    def detail(self) -> str:
        """One text for the report: faults first, else the reason for waiting, then the notes."""
        parts = [str(fault) for fault in self.faults[:SHOWN]]
        if len(self.faults) > SHOWN:
            parts.append(f"and {len(self.faults) - SHOWN} more")
        if self.waiting:
            parts.append(self.waiting)
        parts += self.notes[:SHOWN]
        if len(self.notes) > SHOWN:
            parts.append(f"and {len(self.notes) - SHOWN} more notes")
        return writable("; ".join(parts))
