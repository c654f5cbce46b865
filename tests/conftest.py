"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says how busy the machine is, nothing of the code.
settings.register_profile("prereg", deadline=None)
settings.load_profile("prereg")
