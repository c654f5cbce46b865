"""Names that some systems cannot give to a file or a folder (docs/formats.md section 3)."""

from __future__ import annotations

_SPECIAL = frozenset('<>:"|?*')
"""Characters that no name of a file may have on some systems."""
_PORTS = {f"{name}{digit}" for name in ("com", "lpt") for digit in "0123456789¹²³"}
_RESERVED = frozenset({"con", "prn", "aux", "nul", "conin$", "conout$"} | _PORTS)
"""Names that some systems give to devices, whatever follows the first dot."""


def part_fault(part: str) -> str | None:
    """Why some system cannot hold a file or a folder of this name, or None."""
    if part.endswith((".", " ")):
        return (
            f"has a part that ends with a {'dot' if part.endswith('.') else 'space'}, which some systems drop"
        )
    if special := next((ch for ch in part if ch in _SPECIAL), None):
        return f"has the character {special}, which no name may have on some systems"
    if is_device(part):
        return f"has the part {part!r}, which some systems reserve for a device"
    return None


def is_device(name: str) -> bool:
    """Whether some system reserves the name for a device."""
    return name.split(".", 1)[0].rstrip(" ").casefold() in _RESERVED
