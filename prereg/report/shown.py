"""How the page shows numbers and times."""

from __future__ import annotations


def count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def tiny(value: float) -> str:
    return f"{value:.2g}".replace("-", "−")


def mass(value: float | None) -> str:
    """A probability: six decimals, or two digits and the power of ten where six would show little."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    return f"{value:.6f}" if value >= 1e-4 else f"{value:.1e}".replace("-", "−")


def unstopped(text: str) -> str:
    """A sentence without its full stop, where one follows."""
    return text.rstrip().removesuffix(".")


def when(time: str) -> str:
    return time[:19].replace("T", " ") + " UTC"
