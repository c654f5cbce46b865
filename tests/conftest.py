"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from hypothesis import settings

# Workers of a parallel run are given a width of their own; tables are asked for at prereg's.
os.environ.pop("COLUMNS", None)

# A script's background job ignores Ctrl-C, and so would every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says how busy the machine is, nothing of the code.
settings.register_profile("prereg", deadline=None)
settings.load_profile("prereg")


@pytest.fixture(autouse=True)
def nobody_named_a_study() -> None:
    """A process reads one command line; in the process of the tests, those of earlier tests are forgotten."""
    if output := sys.modules.get("prereg.cli.output"):
        output._named.clear()
