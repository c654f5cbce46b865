"""A lane of a sweep over the small decoder of `choices_fixture`, walked for real in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.adapters.base import Arm
from harness.choices.tree import Chooser, Leaf, Run
from harness.collectors.choices import Request, collect
from harness.collectors.choices_wire import leaf_json
from prereg.analyse.exact import decide_exactly, departing_paths, law_of
from prereg.collect.choices import leaf_of
from prereg.collect.worker import WorkerLost, WorkerRefused
from prereg.model.law import Outcome
from prereg.model.sweep import Case, Try
from prereg.model.tree import ExactResult, Tree
from tests.unit import choices_fixture

TRIES = tuple(
    Try(seed=str(seed), initializer_range=0.4, prompt="ab", horizon=choices_fixture.HORIZON)
    for seed in (0, 1, 2)
)


class Crashing:
    """An engine that raises on every request."""

    random_state_changed = 0

    def run(self, chooser: Chooser) -> Run:
        chooser.choose(choices_fixture.normalised([1.0]), "token")  # type: ignore[arg-type]
        counters = {"proposals": 0, "verifications": 0, "accepted": 0}
        return Run(outcome={"crash": "IndexError"}, counters=counters, digest="")


class LocalLane:
    """What `prereg.collect.sweep_walk.Lane` offers, without a worker.

    Features: `model` (an integer) gives the decoder other weights; `fault` plants one in the on arm; `idle`
    changes nothing; `raises` makes the named arms (`on`, `both`) crash; `dies` kills the worker on the on
    arm; `refused` is refused.
    """

    def __init__(self) -> None:
        self.bench: Any = None
        self.features: Mapping[str, Any] = {}
        self.tried: Try | None = None
        self.speculated: list[Try] = []
        """Tries whose on arm was walked, in order."""

    def open(self, features: Mapping[str, Any], tried: Try) -> None:
        if "refused" in features:
            raise WorkerRefused("bad-request", "features.refused: no such setting")
        self.features, self.tried = features, tried
        seed = int(tried.seed) + 100 * features.get("model", 0)
        made = choices_fixture.bench(seed, features.get("mode", "lookup"), fault=features.get("fault"))
        raising = features.get("raises")
        self.bench = choices_fixture.Bench(
            off=Crashing() if raising == "both" else made.off,  # type: ignore[arg-type]
            on=Crashing() if raising else made.on,  # type: ignore[arg-type]
        )

    def law(self) -> dict[Outcome, float]:
        raise WorkerRefused("unsupported", "no oracle")

    def walk(self, speculation: bool, runs: int = 0) -> Tree:
        if speculation and self.tried is not None:
            self.speculated.append(self.tried)
        if speculation and "dies" in self.features:
            raise WorkerLost("the worker ended; killed by SIGSEGV")
        return self._tree(speculation)

    def _tree(self, speculation: bool) -> Tree:
        arm = Arm(id="on" if speculation else "off", role="", speculation=speculation)
        leaves, done = [], None
        for item in collect(self.bench, Request(arm=arm)):
            if isinstance(item, Leaf):
                leaves.append(leaf_of(leaf_json(item)))
            else:
                done = item
        assert done is not None
        return Tree(
            leaves=tuple(leaves),
            runs=done.runs,  # type: ignore[union-attr]
            unexplored=done.unexplored,  # type: ignore[union-attr]
            # The decoder has no sampler of its own that wrappers could disturb.
            admission=done.admission | {"interference": {"checked": 1, "ok": True}},  # type: ignore[union-attr]
            seconds=0.0,
        )

    def draw(self, speculation: bool) -> Outcome:
        if speculation and self.features.get("dies") == "always":
            raise WorkerLost("the worker ended; killed by SIGSEGV")
        return self._tree(speculation).leaves[0].outcome

    def explain(self, on: Tree, paths: Sequence[Sequence[int]]) -> dict[str, Any] | None:
        raise WorkerRefused("unsupported", "no oracle")

    def close(self) -> None:
        self.bench = None


class Judge:
    """The exact channel's analysis."""

    def law(self, tree: Tree) -> Mapping[Outcome, float]:
        return law_of(tree)

    def decide(self, off: Tree, on: Tree, case: Case, tried: Try) -> ExactResult:
        return decide_exactly(off, on, events=(), predicates=())

    def failing(self, off: Tree, on: Tree) -> Sequence[Sequence[int]]:
        return departing_paths(off, on)


def case(features: Mapping[str, Any], beside: Mapping[str, Any] | None = None, **change: Any) -> Case:
    """A case over the small decoder."""
    values: dict[str, Any] = {
        "name": "case",
        "features": dict(features),
        "beside": dict(beside or {}),
        "source": "",
        "makes": (),
        "note": "",
        "deterministic": False,
        "tries": TRIES,
    }
    return Case(**{**values, **change})
