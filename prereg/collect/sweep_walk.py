"""One worker of a sweep: it stays for many cases, since starting an engine takes longer than most of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prereg.codec.convert import outcome_from
from prereg.collect.choices import ARMS, leaf_of
from prereg.collect.network import isolation
from prereg.collect.worker import Launch, Worker, WorkerLost
from prereg.model.law import Outcome
from prereg.model.sweep import Table, Try
from prereg.model.tree import Tree, TreeLeaf
from prereg.store.layout import harness_root

SILENCE = 300.0
"""Seconds without a leaf after which a worker is given up."""

ASSISTANT = "assistant"

RUNS = 1500
"""Engine runs an arm at most; what is left unexplored then stays as slack in the law."""


class Lane:
    """A worker and the settings it was last opened with. Belongs to one thread, but for `kill`."""

    def __init__(self, python: Path, scratch: Path, build: str, table: Table, drafter: str) -> None:
        self._python = python
        self._scratch = scratch
        self._build = build
        self._table = table
        self._drafter = drafter
        self._worker: Worker | None = None
        self._ended = False

    def _alive(self) -> Worker:
        if self._ended:
            raise WorkerLost("the sweep was stopped")
        if self._worker is None:
            self._worker = Worker(
                Launch(
                    python=self._python,
                    code=harness_root().parent,
                    scratch=self._scratch,
                    isolation=isolation(),
                )
            )
        return self._worker

    def offered(self) -> dict[str, Any]:
        """What the engine offers (`harness.sweep`). Raises WorkerLost or WorkerRefused, as all here do."""
        found: dict[str, Any] = self._alive().call("features", adapter=self._table.adapter)
        return found

    def open(self, features: Mapping[str, Any], tried: Try) -> None:
        """Open the configuration that the following calls are about."""
        self._alive().call(
            "open",
            configuration={
                "id": "sweep",
                "role": "probe",
                "about": "a case of a sweep",
                "build": self._build,
                "adapter": self._table.adapter,
                "model": "tiny",
                "prompt": "prompt",
                "horizon": tried.horizon,
                "features": dict(features),
                "drafter": drafter_of(self._table, tried, self._drafter),
                "predicates": [],
                "command": None,
            },
            model=model_of(self._table, tried),
            prompt=prompt_of(self._table, tried),
            cwd=None,
        )

    def law(self) -> dict[Outcome, float]:
        """The law of sequential sampling, from the engine side's oracle."""
        value = self._alive().call("law", silence=SILENCE)
        return {outcome_from(mass["outcome"]): float(mass["p"]) for mass in value["law"]}

    def walk(self, speculation: bool, runs: int = RUNS) -> Tree:
        """Walk one arm through the engine's own choices."""
        leaves: list[TreeLeaf] = []
        began = time.monotonic()
        done = self._alive().call(
            "choices",
            silence=SILENCE,
            streams={
                "leaf": lambda value: leaves.append(leaf_of(value)),
                "restart": lambda _: leaves.clear(),
            },
            arm=dict(ARMS[speculation]),
            mode="best-first",
            budget={"runs": runs, "seconds": None, "mass": None},
        )
        return Tree(
            leaves=tuple(leaves),
            runs=int(done["runs"]),
            unexplored=float(done["unexplored"]),
            admission=dict(done["admission"]),
            seconds=time.monotonic() - began,
        )

    def draw(self, speculation: bool) -> Outcome:
        """One ordinary request, from seed 0."""
        drawn: list[Any] = []
        self._alive().call(
            "draws",
            silence=SILENCE,
            streams={"request": drawn.append},
            arm=dict(ARMS[speculation]),
            seeds=["0"],
            rows=1,
        )
        return outcome_from(drawn[0]["draws"][0]["outcome"])

    def explain(self, on: Tree, paths: Sequence[Sequence[int]]) -> dict[str, Any] | None:
        """Why the first of these paths of the on arm departs, if one can be told to."""
        value = self._alive().call(
            "explain",
            silence=SILENCE,
            arm=dict(ARMS[True]),
            choices=[list(path) for path in paths],
            expand=bool(on.admission.get("refill", {}).get("expanded", False)),
        )
        found = value["path"]
        return None if found is None else dict(found)

    def kill(self) -> None:
        """End the worker at once, and for good; safe from any thread."""
        self._ended = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        """End the worker; the next call starts another."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def model_of(table: Table, tried: Try) -> dict[str, Any]:
    """The description of a try's model; its own letters replace the table's, and the end token stays last."""
    model = {**table.model, "seed": tried.seed, "initializer_range": tried.initializer_range}
    if tried.letters:
        model |= {
            "vocab": [*tried.letters, table.model["vocab"][table.model["eos"]]],
            "eos": len(tried.letters),
        }
    return model


def drafter_of(table: Table, tried: Try, kind: str) -> dict[str, Any]:
    """The drafter of a try: the table's, or (`assistant`) a model of the same kind with other weights."""
    if kind != ASSISTANT:
        return dict(table.drafter)
    other = replace(tried, seed=str(int(tried.seed) + 1))
    return {"kind": ASSISTANT, "model": model_of(table, other), "max_tokens": 2}


def prompt_of(table: Table, tried: Try) -> list[int]:
    """The tokens of a try's prompt."""
    vocabulary: list[str] = model_of(table, tried)["vocab"]
    return [vocabulary.index(letter) for letter in tried.prompt]
