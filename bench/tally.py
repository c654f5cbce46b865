"""Time from records in memory to decisions, against evaluating every event on every draw.

    python bench/tally.py [--draws 11000] [--configurations 5] [--naive-draws 2000]

The naive way is timed on the first `--naive-draws` records of each unit and scaled up; on those records both
ways are checked to count the same.
"""

from __future__ import annotations

import argparse
import time

from bench.synthetic import SEAL, enumerated_family, sample, study
from prereg.analyse.decide import decide
from prereg.analyse.tally import tally
from prereg.model.law import MaxTokens, NoEarlyEnd, Predicate
from prereg.stats.membership import contains, membership_of, predicates_of
from prereg.stats.power import power_table, reach_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=11_000, help="draws of each unit")
    parser.add_argument("--configurations", type=int, default=5)
    parser.add_argument("--naive-draws", type=int, default=500, help="draws of each unit done the naive way")
    given = parser.parse_args()

    predicates = [
        Predicate(id="length", statement="at most 3", source="-", rule=MaxTokens(n=3)),
        Predicate(id="minimum", statement="none early", source="-", rule=NoEarlyEnd(n=0, end=(0,))),
    ]
    families = {f"c{i}": enumerated_family(7, 3, seed=i) for i in range(given.configurations)}
    plan = study(families, draws=given.draws, predicates=predicates)
    records = {
        unit.id: sample(families[unit.configuration], unit.id, given.draws, seed=i, proposals=i % 2)
        for i, unit in enumerate(plan.protocol.units())
    }
    events = len(next(iter(families.values())).events)
    total = sum(len(r) for r in records.values())
    print(f"{given.configurations} configurations x {events} events, {total} records")

    start = time.perf_counter()
    tallies = {unit: tally(unit, of) for unit, of in records.items()}
    tallied = time.perf_counter()
    decisions = decide(plan, SEAL, tallies, set())
    fast = time.perf_counter() - start
    verdicts = ", ".join(d.verdict for d in decisions.configurations)
    print(f"tally {tallied - start:.2f} s + decide {fast - tallied + start:.2f} s = {fast:.2f} s: {verdicts}")

    naive = 0.0
    for unit in plan.protocol.units():
        configuration = plan.protocol.configuration(unit.configuration)
        listed = families[unit.configuration].events
        binding = predicates_of(plan, configuration)
        part = records[unit.id][: given.naive_draws]
        start = time.perf_counter()
        counts = [sum(contains(e, r.outcome, listed, binding) for r in part) for e in listed]
        naive += (time.perf_counter() - start) * len(records[unit.id]) / len(part)
        assert counts == membership_of(plan, configuration).totals(tally(unit.id, part).outcomes), unit.id
    print(f"naive counting, scaled to all records: {naive:.1f} s, {naive / fast:.0f} times as long")

    start = time.perf_counter()
    rows = power_table(plan)
    reach = reach_table(plan)
    took = time.perf_counter() - start
    print(f"power: {len(rows)} rows, reach: {len(reach)} rows, {took:.2f} s at {given.draws} draws an arm")


if __name__ == "__main__":
    main()
