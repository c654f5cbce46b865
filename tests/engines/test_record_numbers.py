"""What a record may hold that JSON has no form for (docs/formats.md section 7)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from prereg.collect.runtime import environment_of, interpreter
from prereg.store.harness import harness_root

pytestmark = pytest.mark.engines

NUMBERS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from harness.adapters.records import number
least = np.finfo(np.float32).min
given = (least, -least, -np.inf, np.nan, -0.0, 0.1, 2.0**53, 2.0**20)
print(json.dumps([number(np.float32(x)) for x in given]))
"""


def test_a_mask_of_the_least_float_is_told_as_minus_infinity() -> None:
    python = str(interpreter(environment_of("hf-5.17.0")))
    root = str(Path(harness_root()).parent)
    done = subprocess.run([python, "-c", NUMBERS, root], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == ["-inf", "inf", "-inf", "nan", 0.0, 0.1, "inf", 2.0**20]
