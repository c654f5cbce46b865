"""The pytest plugin: the fixture `no_departure` and the option `--prereg-build`.

Every pytest run of an environment that has prereg loads this module, so it loads nothing but pytest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from prereg.testing import assert_no_departure


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("prereg", "speculative decoding").addoption(
        "--prereg-build",
        default=None,
        metavar="NAME",
        help="The engine build of `no_departure` where a test names none (default: the tests' own).",
    )


@pytest.fixture
def no_departure(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`prereg.testing.assert_no_departure`, with the build of `--prereg-build` unless a test names one."""
    return functools.partial(assert_no_departure, build=request.config.getoption("--prereg-build"))
