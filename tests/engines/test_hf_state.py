"""The state digest of a user's own object: what it holds makes it, wherever it is held; nothing else does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.engines.hf_environment import hf_python

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import collections, copy, hashlib, itertools, random, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import torch
from harness.choices.hf_state import hash_whole

class Slotted:
    __slots__ = ("a", "b")
    def __init__(self, a):
        self.a, self.b = a, {1, 2}

class Processor:
    kept = 0
    def __init__(self, held):
        self.held = held

def digest(held):
    hashed = hashlib.sha256()
    hash_whole(hashed, Processor(held))
    return hashed.hexdigest()

def generator(seed):
    made = torch.Generator()
    made.manual_seed(seed)
    return made

loop = []
loop.append(loop)
HELD = [
    None, 0, False, "0", 0.0, b"0", [], (), {}, set(), [1, [2]], [[1], 2], [1, 2], {"a": 1}, {"a": 2}, {1, 2},
    {1, 3}, collections.deque([1]), collections.deque([2]), itertools.count(3), itertools.count(4),
    torch.zeros(3), torch.zeros(3, 1), torch.ones(3), torch.zeros(3, dtype=torch.bfloat16),
    torch.tensor(True),
    torch.zeros(()), np.zeros(3), np.ones(3), np.zeros(3, dtype=np.float32), np.array([1, "a"], dtype=object),
    random.Random(1), random.Random(2), np.random.default_rng(1), np.random.default_rng(2),
    np.random.RandomState(1), np.random.RandomState(2), generator(1), generator(2),
    Slotted(1), Slotted(2), loop, torch.nn.Linear(2, 2), np, Slotted, digest,
]
digests = [digest(held) for held in HELD]
assert len(set(digests)) == len(HELD), [h for h, d in zip(HELD, digests) if digests.count(d) > 1]
assert digests == [digest(held) for held in HELD], "a digest changes what it digests"
for held, before in zip(HELD, digests):
    if isinstance(held, (list, dict, set, Slotted, np.ndarray)) and held is not loop:
        assert digest(copy.deepcopy(held)) == before, held
nested = Slotted({"deep": [Slotted([1])]})
before = digest(nested)
nested.a["deep"][0].a.append(2)
assert digest(nested) != before
before = digest(None)
Processor.kept = 1
assert digest(None) != before, "what a class holds outlives a request"
print("ok")
"""


@pytest.mark.engines
def test_what_an_object_holds_makes_its_digest() -> None:
    command = [hf_python(), "-I", "-c", SCRIPT, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
