"""Text that a person gives, checked before a verb begins: the formats take Unicode in form NFC alone."""

from __future__ import annotations

import functools
import typing
import unicodedata
from collections.abc import Callable
from typing import Any

import typer

from prereg.errors import UsageError

_FILES = ("KEY", "FILE:CLASS", "FOLDER|FILE|package:NAME")
"""Values that may name a file: files are called whatever they are called."""


def check_texts(app: typer.Typer) -> None:
    """Let every verb of `app`, and of its groups, refuse such text in any option before it does anything."""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            check_texts(group.typer_instance)
    for verb in app.registered_commands:
        if verb.callback is not None:
            verb.callback = _checked(verb.callback)


def _checked(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def checked(**given: Any) -> Any:
        for name, value in given.items():
            for text in value if isinstance(value, (list, tuple)) else (value,):
                # A path is no str: it may be any bytes, and no file of ours holds it.
                if isinstance(text, str) and not text.isascii():
                    where, metavar = _option(verb, name)
                    if metavar not in _FILES:
                        refuse_text(text, where)
        return verb(**given)

    return checked


def _option(verb: Callable[..., Any], name: str) -> tuple[str, str | None]:
    """How an option or an argument of a verb is called, and what its value is."""
    hint = typing.get_type_hints(verb, include_extras=True).get(name)
    for info in getattr(hint, "__metadata__", ()):
        said = [d for d in (info.default, *(info.param_decls or ())) if isinstance(d, str)]
        called = next((d for d in said if d.startswith("--")), f"--{name.replace('_', '-')}")
        is_option = isinstance(info, typer.models.OptionInfo)
        return called if is_option else info.metavar or name, info.metavar
    return name, None


def refuse_text(text: str, where: str) -> None:
    """Raise UsageError for text that is no Unicode, or not in form NFC, which no file of ours can hold."""
    if any("\ud800" <= ch <= "\udfff" for ch in text):
        raise UsageError("is not UTF-8", where=where, next_step="write it in UTF-8")
    if not unicodedata.is_normalized("NFC", text):
        raise UsageError(
            f"the text {text[:40]!a} is not in Unicode form NFC: its accents are characters of their own",
            where=where,
            next_step="write each letter with its accent as one character; uconv -x any-nfc does it",
        )
