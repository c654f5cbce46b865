"""What an installed llama-cpp-python offers: read from its own code, not from a list of ours."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any

import llama_cpp
from llama_cpp import Llama, LogitsProcessorList, StoppingCriteriaList
from llama_cpp import llama as module

from harness.sweep import Offered

METHODS = (Llama.generate, Llama.create_completion)
"""The methods that make a request."""


def offered() -> Offered:
    """The parameters of both methods, the samplers that they chain, and the library's own processors."""
    names = {name for method in METHODS for name in inspect.signature(method).parameters}
    return Offered(
        engine="llama-cpp-python",
        version=llama_cpp.__version__,
        settings=tuple(sorted(names - {"self"})),
        arguments=(),
        processors=(*_samplers(), *_classes("LogitsProcessor", LogitsProcessorList)),
        criteria=_classes("StoppingCriteria", StoppingCriteriaList),
    )


def _samplers() -> tuple[str, ...]:
    """The `add_…` calls by which `Llama` puts its chain of samplers together."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(Llama._init_sampler)))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return tuple(sorted({name.attr for name in called if isinstance(name, ast.Attribute) and _adds(name)}))


def _adds(name: ast.Attribute) -> bool:
    return name.attr.startswith("add_")


def _classes(suffix: str, listed: Any) -> tuple[str, ...]:
    """Names of the library's own classes of a kind, but for the list of them."""
    found: Iterable[Any] = (kind for kind in vars(module).values() if inspect.isclass(kind))
    return tuple(
        sorted({kind.__name__ for kind in found if kind.__name__.endswith(suffix)} - {listed.__name__})
    )
