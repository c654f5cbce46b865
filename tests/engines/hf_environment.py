"""Where the tests marked `engines` find an interpreter with Transformers in it."""

from __future__ import annotations

import os
from pathlib import Path


def hf_python() -> str:
    """The interpreter of an hf-5.17.0 environment, from PREREG_HF_PYTHON or the built one."""
    given = os.environ.get("PREREG_HF_PYTHON")
    if not given:
        from prereg.collect.runtime import environment_of, interpreter

        given = str(interpreter(environment_of("hf-5.17.0")))
    assert Path(given).exists(), f"PREREG_HF_PYTHON is {given}, which does not exist"
    return given
