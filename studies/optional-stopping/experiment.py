"""Does looking at the data early, and stopping at the first significant result, inflate false positives?

One draw is one imaginary trial in which nothing is going on: `--looks` batches of `--batch` observations
from a standard normal, tested with a two-sided z-test of mean zero. The reference arm (`fixed`) tests once,
at the end, at the 5 % level. The test arm (`peeking`) tests after every batch and stops at the first result
beyond its boundary. A draw's value is `significant` or `not-significant`.

Replace this file by your own experiment: it must print exactly `--rows` JSON lines {"value": ...} and take
all its randomness from `--seed`.
"""

import argparse
import json
import math
import random
import sys

Z_FIXED = 1.959963984540054
"""Two-sided 5 % point of the normal law."""

BOUNDARIES = {"naive": Z_FIXED, "pocock-5": 2.413}
"""`naive` repeats the 5 % test at every look; `pocock-5` is Pocock's constant for five looks at 5 %."""


def trial(rng: random.Random, arm: str, boundary: float, looks: int, batch: int) -> str:
    total, seen = 0.0, 0
    for look in range(1, looks + 1):
        total += math.fsum(rng.gauss(0.0, 1.0) for _ in range(batch))
        seen += batch
        z = abs(total) / math.sqrt(seen)
        if arm == "peeking" and z > boundary:
            return "significant"
        if arm == "fixed" and look == looks and z > Z_FIXED:
            return "significant"
    return "not-significant"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", required=True, choices=["fixed", "peeking"])
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--rows", required=True, type=int)
    parser.add_argument("--boundary", required=True, choices=sorted(BOUNDARIES))
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("--batch", type=int, default=20)
    a = parser.parse_args()
    rng = random.Random(a.seed)
    for _ in range(a.rows):
        value = trial(rng, a.arm, BOUNDARIES[a.boundary], a.looks, a.batch)
        sys.stdout.write(json.dumps({"value": value}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
