"""Section 15 in the small, with numbers worked by hand: by draws, and exactly."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from audits.compatible import by_draws, exactly
from audits.decide import law_of
from audits.jsonc import canonical
from audits.leaves import Leaf, Tree
from audits.records import Tally
from audits.study import Study
from audits.tree import Arm, arm_of

Json = dict[str, Any]
A, B, C = ({"tokens": [i], "finish": None} for i in range(3))
CRASH = {"crash": "E"}
NO_COUNTS = {"proposals": 0, "verifications": 0, "accepted": 0}


def _law(*rows: tuple[Json, float]) -> list[Json]:
    return [{"outcome": outcome, "p": p} for outcome, p in rows]


def _study(mechanism: list[Json], allowance: float = 0.005, others: int = 0) -> Study:
    """One event, of A; P is a half A and a half B. ``others`` are registered and drawn too."""
    names = ["c", *(f"other-{i}" for i in range(others))]
    return Study(
        id="s",
        protocol={
            "edition": 2,
            "configurations": [{"id": name, "predicates": []} for name in names],
            "stages": [{"id": "s", "configurations": names}],
            "exact": {"tolerance": 0.01},
            "hypotheses": {"alpha": 0.05, "allowance": allowance},
        },
        blocks=[],
        events={
            "c": {
                "reference": _law((A, 0.5), (B, 0.5)),
                "events": [{"id": "a", "kind": "outcome", "outcome": A}],
                "hypothesis": {"id": "H", "switch": 0, "law": mechanism},
            }
        },
        predicates={},
        predictions=[],
        off="off",
        on="on",
        registered=dict.fromkeys(names, "H"),
    )


def _drawn(study: Study, verdict: str = "FAILS", **counts: int) -> Json:
    outcomes = {"a": A, "b": B, "c": C, "crash": CRASH}
    tally = Tally(Counter({canonical(outcomes[name]): n for name, n in counts.items()}))
    return by_draws(study, "c", law_of(study, study.configurations[0]), tally, verdict)[0]


def test_three_draws() -> None:
    row = _drawn(_study(_law((A, 1))), a=1, b=2)
    # h = 1 and E = 1: the level is 0.05 / 2 = 1/40.
    assert row["level"] == 0.05 / 2
    # U of 1 in 3 solves 3u^2 - 2u^3 = 39/40; mu_H(A) = 1 is above it by 1 - u. Both B are impossible.
    u = 1 - row["excess"]
    assert 3 * u**2 - 2 * u**3 == pytest.approx(39 / 40, abs=1e-14)
    assert (row["event"], row["impossible"], row["status"]) == ("a", 2, "NOT_COMPATIBLE")
    # P(A) = 1/2 lies between L = 1 - (39/40)^(1/3) and u: the excess is the less negative of the two gaps.
    assert row["null_excess"] == pytest.approx(max(0.5 - (39 / 40) ** (1 / 3), 0.5 - u), abs=1e-14)
    assert (row["null_event"], row["null_impossible"], row["null_rejected"]) == ("a", 0, False)


def test_a_mechanism_that_gives_too_little() -> None:
    # 3 of 3 A: L is (1/40)^(1/3) = 0.2924..., above mu_H(A) = 1/4 by 0.0424...; nothing is impossible.
    few = _law((A, 0.25), (B, 0.75))
    row = _drawn(_study(few), a=3)
    assert row["excess"] == pytest.approx((1 / 40) ** (1 / 3) - 0.25, abs=1e-14)
    assert (row["impossible"], row["status"]) == (0, "NOT_COMPATIBLE")
    assert _drawn(_study(few, allowance=0.05), a=3)["status"] == "COMPATIBLE"
    # With three others registered the level is 0.05 / (4 * 2), and L is below mu_H(A).
    row = _drawn(_study(few, others=3), a=3)
    assert row["level"] == 0.05 / 8
    assert row["excess"] == pytest.approx((1 / 160) ** (1 / 3) - 0.25, abs=1e-14)
    assert row["status"] == "COMPATIBLE"


def test_the_allowance_itself_is_compatible() -> None:
    few = _law((A, 0.25), (B, 0.75))
    excess = _drawn(_study(few), a=3)["excess"]
    assert _drawn(_study(few, allowance=excess), a=3)["status"] == "COMPATIBLE"


def test_what_is_impossible() -> None:
    # An outcome of p = 0, one that the law has not, and a crash; a crash that the law has is possible.
    row = _drawn(_study(_law((A, 1), (B, 0)), allowance=1), a=1, b=1, c=1, crash=1)
    assert (row["impossible"], row["null_impossible"], row["status"]) == (3, 2, "NOT_COMPATIBLE")
    assert row["null_rejected"] is True
    row = _drawn(_study(_law((A, 0.5), (CRASH, 0.5)), allowance=1), a=1, crash=1)
    assert (row["impossible"], row["null_impossible"], row["status"]) == (0, 1, "COMPATIBLE")


def test_the_verdict_comes_first() -> None:
    study = _study(_law((A, 1)))
    void = _drawn(study, "VOID", a=1, b=2)
    assert void == _drawn(study, a=1, b=2) | {"status": "VOID"}
    lost = _drawn(study, "INVALID", a=1, b=2)
    numbers = ("excess", "event", "impossible", "null_excess", "null_event", "null_impossible")
    nothing = dict.fromkeys((*numbers, "null_rejected"))
    assert lost == {"id": "H", "level": 0.025, "status": "INVALID"} | nothing


def _arm(*rows: tuple[Json, float]) -> Arm:
    leaves = [Leaf([i], "t", [p], canonical(y), NO_COUNTS, False, 0) for i, (y, p) in enumerate(rows)]
    return arm_of(Tree(leaves=leaves))


# mu_H, the on arm's law; status, the interval of mu_H, that of P (a half A, a half B)
EXACT: dict[str, tuple[list[Json], Arm, str, tuple[float, float], tuple[float, float]]] = {
    "its own": (
        _law((A, 0.25), (C, 0.75)), _arm((A, 0.25), (C, 0.75)), "MATCHES", (0, 0), (0.75, 0.75),
    ),
    "P": (_law((A, 0.25), (C, 0.75)), _arm((A, 0.5), (B, 0.5)), "DEPARTS", (0.75, 0.75), (0, 0)),
    # A quarter is unexplored, and may be what mu_H has too much.
    "a bounded arm": (_law((C, 1)), _arm((A, 0.25), (C, 0.5)), "DEPARTS", (0.25, 0.5), (0.5, 0.75)),
    "a bounded arm that may match": (
        _law((A, 0.25), (C, 0.75)), _arm((A, 0.25), (C, 0.5)), "INCONCLUSIVE", (0, 0.25), (0.5, 0.75),
    ),
    # mu_H sums to 1 - 2^-31: as much as that it may have elsewhere.
    "a law that is short": (
        _law((A, 0.5), (C, 0.5 - 2**-31)), _arm((A, 0.5), (C, 0.5)), "MATCHES", (0, 2**-31), (0.5, 0.5),
    ),
    "within the tolerance": (
        _law((A, 0.5), (C, 0.5)), _arm((A, 0.5), (C, 0.4921875), (B, 0.0078125)), "MATCHES",
        (0.0078125, 0.0078125), (0.4921875, 0.4921875),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_the_total_variation_to_a_law(name: str) -> None:
    mechanism, arm, status, own, null = EXACT[name]
    study = _study(mechanism)
    law = law_of(study, study.configurations[0])
    row = exactly(study, "c", law, arm, "DEPARTS")
    numbers = dict(zip(("tv_lower", "tv_upper", "null_tv_lower", "null_tv_upper"), own + null, strict=True))
    assert row == {"id": "H", "status": status} | numbers
    assert exactly(study, "c", law, arm, "VOID") == row | {"status": "VOID"}
    lost = exactly(study, "c", law, None, "INVALID")
    assert lost == {"id": "H", "status": "INVALID"} | dict.fromkeys(numbers)
    # A verdict INVALID for the off arm's sake leaves nothing either.
    assert exactly(study, "c", law, arm, "INVALID") == lost
