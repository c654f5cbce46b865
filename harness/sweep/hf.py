"""What an installed Transformers offers: read from its own code, not from a list of ours."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import transformers
from transformers import GenerationConfig, GenerationMixin, LogitsProcessor, StoppingCriteria
from transformers.generation import configuration_utils, logits_process, stopping_criteria

from harness.sweep import Offered

FACTORIES: tuple[Callable[..., Any], ...] = (
    GenerationMixin._get_logits_processor,
    GenerationMixin._get_stopping_criteria,
)
"""Where `generate()` makes its processors and its stopping rules."""


def offered() -> Offered:
    """The settings of `GenerationConfig`, the arguments of `generate()`, and what its factories make."""
    made = [kind for factory in FACTORIES for kind in instantiated(factory)]
    base: Any = configuration_utils.BaseWatermarkingConfig
    for kind in vars(configuration_utils).values():
        # A watermark's configuration makes its own processor.
        if inspect.isclass(kind) and issubclass(kind, base):
            made.extend(instantiated(vars(kind)["construct_processor"]))
    arguments = inspect.signature(GenerationMixin.generate).parameters
    return Offered(
        engine="transformers",
        version=transformers.__version__,
        settings=tuple(sorted(name for name in vars(GenerationConfig()) if not name.startswith("_"))),
        arguments=tuple(sorted(set(arguments) - {"self", "kwargs"})),
        processors=_names(made, LogitsProcessor),
        criteria=_names(made, StoppingCriteria),
    )


def instantiated(function: Callable[..., Any]) -> list[type[Any]]:
    """The classes of the engine that the source of `function` calls by name.

    A function may import them itself, so the names are looked up in the engine's own modules too.
    """
    scope = vars(stopping_criteria) | vars(logits_process) | inspect.unwrap(function).__globals__
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [scope.get(name.id) for name in called if isinstance(name, ast.Name)]
    return [kind for kind in found if inspect.isclass(kind)]


def _names(kinds: list[type[Any]], base: type[Any]) -> tuple[str, ...]:
    return tuple(sorted({kind.__name__ for kind in kinds if issubclass(kind, base) and kind is not base}))
