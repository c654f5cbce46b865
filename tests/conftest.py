"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Workers of a parallel run are given a width of their own; tables are asked for at prereg's.
os.environ.pop("COLUMNS", None)

# How long an example takes says how busy the machine is, nothing of the code.
settings.register_profile("prereg", deadline=None)
settings.load_profile("prereg")
