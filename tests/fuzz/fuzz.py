"""Coverage-guided bytes to every parser of evidence: `make fuzz`. The first byte says to which.

Options are those of libFuzzer; a finding is written to a file beside, and is worth a case in
tests/property/test_parsers.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "property")]

with atheris.instrument_imports(include=["audits", "prereg.codec", "prereg.seal", "prereg.store"]):
    from parsers import PARSERS, try_one

NAMES = sorted(PARSERS)


def one(data: bytes) -> None:
    """Give the rest of the bytes to one parser."""
    if data:
        try_one(NAMES[data[0] % len(NAMES)], data[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
