"""Run in an engine's environment: whether the engine's own runs made the calls that a hypothesis says.

`python mechanism_calls.py ROOT HYPOTHESIS CONFIGURATION MODEL PROMPT`, the last three as JSON. Prints JSON:
how many runs were compared, and those whose calls are not the calls of any leaf with their outcome.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

STEP = 6
"""One run in so many is made again and compared."""


def calls_of_runs(adapter: Any, arm: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Outcome and calls of some runs of the engine, each made by itself."""
    from harness.choices.explore import Explorer
    from harness.choices.tree import Chooser
    from harness.oracle.naive import canonical

    for leaf in list(Explorer(program=adapter.program(arm), close=False).leaves())[::STEP]:
        program = adapter.program(arm)
        program.trace = []
        run = program.run(Chooser(prefix=leaf.choices))
        calls = tuple((call.phase, tuple(call.tokens)) for call in program.trace)
        yield canonical(run.outcome), calls


def main() -> None:
    root, name, *rest = sys.argv[1:]
    sys.path.insert(0, root)
    from harness import mechanisms
    from harness.adapters.base import load
    from harness.mechanisms.base import ON
    from harness.oracle.naive import canonical

    configuration, model, prompt = map(json.loads, rest)
    adapter = load(configuration["adapter"])
    adapter.open(configuration, model, prompt, None)
    expected: dict[str, set[tuple[Any, ...]]] = {}
    for leaf in mechanisms.load(name).leaves(adapter, False):
        calls = tuple((call.phase, tuple(call.tokens)) for call in leaf.calls)
        expected.setdefault(canonical(leaf.outcome), set()).add(calls)
    runs = list(calls_of_runs(adapter, ON))
    wrong = [(outcome, calls) for outcome, calls in runs if calls not in expected.get(outcome, set())]
    first = min((calls for _, calls in runs), key=len)
    print(json.dumps({"runs": len(runs), "wrong": wrong[:3], "differ": len(wrong), "shortest": first}))


if __name__ == "__main__":
    main()
