"""The grammar processor of xgrammar for Transformers: `{"builtin": "xgrammar", "grammar": text}`.

The grammar is in xgrammar's EBNF, its first rule is `root`. The processor is the library's own, on the
model's own tokenizer; the grammar is compiled once, and each request gets an instance, as the library asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import xgrammar
from xgrammar.contrib.hf import LogitsProcessor

from harness.wire import BAD_REQUEST, JobError


class XgrammarLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """The library's, under a name that says whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A compiled grammar; see `harness.adapters.hf_features.Fresh`."""

    compiled: Any
    kind: type[Any] = XgrammarLogitsProcessor

    def fresh(self) -> Any:
        """A processor that has seen nothing."""
        return self.kind(self.compiled)


def grammar(entry: Mapping[str, Any], where: str, tokenizer: Any, size: int, ends: Sequence[int]) -> Grammar:
    """The processor that `entry` names, for a vocabulary of `size` tokens; `JobError` if it is none."""
    text = entry.get("grammar")
    if entry.keys() != {"builtin", "grammar"} or not isinstance(text, str):
        raise JobError(BAD_REQUEST, f"{where} is not a builtin and the text of a grammar")
    tokens = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=size, stop_token_ids=list(ends))
    try:
        # One thread: a pool of its own would outlive the configuration.
        return Grammar(compiled=xgrammar.GrammarCompiler(tokens, max_threads=1).compile_grammar(text))
    except RuntimeError as error:
        raise JobError(BAD_REQUEST, f"{where}: the grammar cannot be compiled: {error}") from error
