"""Text of other people, made safe to show: what a terminal or a reader's eye would obey becomes visible."""

from __future__ import annotations

import re

_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # turn the direction of writing, or break the line
    "\ud800-\udfff]"  # halves of characters, which cannot be written out
)


def visible(text: str) -> str:
    r"""The text with such characters as they are written in code: `\x1b`, `\u202e`. Tabs and lines stay."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def visible_json(text: str) -> str:
    r"""JSON that means the same, with such characters escaped: the ones that JSON itself lets through."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
