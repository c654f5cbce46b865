"""Reads what lies outside the study: the files of ``trust/``, those an option names, and the auditor's own.

Whoever sent the repository also laid these: none may hang the auditor, fill its memory, or be another file.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from audits.fault import Fault, reason
from audits.load import LARGE, read_regular


def real(path: Path) -> Path:
    """The path without links; one that cannot be followed to its end stays as it is from there on.

    Unlike ``Path.resolve`` it takes a link that leads to itself. Raises ``Fault`` where the path is relative
    to a folder that is no more.
    """
    try:
        return Path(os.path.realpath(path))
    except OSError as error:
        raise Fault(f"cannot be found: {reason(error)}", file=str(path)) from None


def read_given(path: Path, then: str = "") -> bytes:
    """The bytes of a file that somebody chose: it may be a link, but to a regular file of bounded size.

    Raises ``Fault`` with ``then``, what to do next, and ``FileNotFoundError``: a file may be optional.
    """
    try:
        return read_regular(os.path.realpath(path), LARGE)[0]
    except Fault as fault:
        raise Fault(fault.what, file=str(path), then=then) from None
    except FileNotFoundError:
        if os.path.lexists(path):
            raise Fault("is a link to nothing", file=str(path), then=then) from None
        raise
    except OSError as error:
        raise Fault(f"cannot be read: {reason(error)}", file=str(path), then=then) from None


def read_plain(path: Path, then: str = "") -> bytes:
    """The bytes of a file of ``trust/``: a plain file that has no other name (section 4).

    Raises as ``read_given`` does.
    """
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise Fault("is a link; a file of trust is a plain file")
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            raise Fault(f"is a hard link, with {status.st_nlink} names; a file of trust is a plain file")
        return read_regular(str(path), LARGE)[0]
    except FileNotFoundError:
        raise
    except Fault as fault:
        raise Fault(fault.what, file=str(path), then=then) from None
    except OSError as error:
        raise Fault(f"cannot be read: {reason(error)}", file=str(path), then=then) from None


def read_trust(path: Path, own: Path, then: str = "") -> bytes:
    """The bytes of a file of trust; below ``own``, the repository's folder of trust, it is a plain one.

    Raises as ``read_given`` does.
    """
    return read_plain(path, then) if real(path.parent) == real(own) else read_given(path, then)
