"""Trees walked in parts: the same for any number of workers, checked as a whole, resumed after a kill."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from choices_fixture import distance, sequential

from harness.oracle.naive import canonical
from prereg.codec.convert import to_json
from prereg.collect import choices, split
from prereg.collect.lanes import Lanes, Opening
from prereg.collect.network import isolation
from prereg.collect.split import Plan, walk_split
from prereg.collect.split_checks import Checks, spaced
from prereg.collect.split_journal import Journal
from prereg.collect.worker import Launch, WorkerRefused
from prereg.errors import UsageError, WrongState
from prereg.model.law import Decoded
from prereg.model.tree import Tree, TreeLeaf
from prereg.store.layout import harness_root

SEED = 7
ARMS: tuple[dict[str, Any], ...] = (
    {"id": "off", "role": "reference", "speculation": False},
    {"id": "on", "role": "test", "speculation": True},
)
PLAN = Plan(arms=ARMS, checks=Checks(sample=6))

ADAPTER = f"""

class Adapter:
    def open(self, configuration, model, prompt, cwd):
        self.bench = bench({SEED}, configuration["mode"], **configuration["change"])
    def program(self, arm):
        return self.bench.program(arm)
    def kernel(self):
        return self.bench.kernel()
    def tokenize(self, model, text):
        return [int(letter) for letter in text]
"""


WINDOW = """

class Opened(Adapter):
    def __init__(self):
        super().__init__(decoder=Decoder(seed=1))
    def open(self, configuration, model, prompt, cwd):
        object.__setattr__(self, "decoder", Decoder(seed=1, **configuration["change"]))
    def tokenize(self, model, text):
        return [int(letter) for letter in text]
"""


class Cut(Exception):
    """Where the test stops a walk."""


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Launch]:
    """Real workers, of a harness that has the small decoder of `choices_fixture` among its adapters."""
    root = tmp_path_factory.mktemp("code")
    shutil.copytree(harness_root(), root / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    fixture = (Path(__file__).parent / "choices_fixture.py").read_text()
    (root / "harness/adapters/small.py").write_text(fixture + ADAPTER)
    windowed = (Path(__file__).parent / "window_fixture.py").read_text()
    (root / "harness/adapters/windowed.py").write_text(windowed + WINDOW)
    base = root / "harness/adapters/base.py"
    engines = {"small": "Adapter", "windowed": "Opened"}
    of_each = ", ".join(
        f'"{name}": Engine(module="harness.adapters.{name}", factory="{factory}", install="")'
        for name, factory in engines.items()
    )
    base.write_text(f"{base.read_text()}\nENGINES = {{**ENGINES, {of_each}}}\n")

    def of(name: str) -> Launch:
        return Launch(python=Path(sys.executable), code=root, scratch=root / name, isolation=isolation())

    return of


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "PART_RUNS", 3)


def opening(mode: str, **change: Any) -> Opening:
    adapter = "windowed" if mode == "windowed" else "small"
    configuration = {"adapter": adapter, "mode": mode, "change": change}
    return Opening(configuration=configuration, model={}, prompt=None, text="01")


def walk(
    launch: Callable[[str], Launch],
    lanes: int,
    mode: str,
    journal: Journal | None = None,
    advance: Callable[[str, int], None] = lambda arm, leaves: None,
    plan: Plan = PLAN,
    **change: Any,
) -> dict[str, Tree]:
    with Lanes(launch, lanes) as workers:
        assert workers.open(opening(mode, **change)) == [0, 1]
        return walk_split(plan, workers, journal or Journal(None, ""), advance)


def law(tree: Tree) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for leaf in tree.leaves:
        found.setdefault(canonical(to_json(leaf.outcome)), []).append(math.prod(leaf.p))
    return {key: math.fsum(weights) for key, weights in found.items()}


def same(one: Tree, two: Tree) -> bool:
    return (one.leaves, one.runs, one.admission) == (two.leaves, two.runs, two.admission)


@pytest.mark.parametrize("mode", ["lookup", "model"])
def test_the_number_of_workers_changes_nothing(launch: Callable[[str], Launch], mode: str) -> None:
    told = {"off": 0, "on": 0}

    def advance(arm: str, leaves: int) -> None:
        told[arm] += leaves

    alone = walk(launch, 1, mode, advance=advance)
    shared = walk(launch, 3, mode)
    for arm in ("off", "on"):
        assert same(alone[arm], shared[arm])
        assert distance(law(alone[arm]), sequential(SEED)) < 1e-12
        assert alone[arm].admission["ok"], alone[arm].admission
        assert alone[arm].admission["replay"]["checked"] == 6
        assert told[arm] == len(alone[arm].leaves)
        assert list(alone[arm].leaves) == sorted(alone[arm].leaves, key=lambda leaf: leaf.choices)
    assert alone["on"].admission["proposals"] > 0


def test_a_shortcut_that_fails_in_one_part_fails_for_the_whole(launch: Callable[[str], Launch]) -> None:
    told: list[int] = []
    trees = walk(
        launch, 2, "lookup", advance=lambda arm, n: told.append(n) if arm == "on" else None, reuses=True
    )
    checks = trees["on"].admission
    assert checks["restarts"] == ["refill"] and checks["refill"]["expanded"] and checks["ok"]
    assert trees["off"].admission["restarts"] == []
    assert distance(law(trees["on"]), sequential(SEED)) < 1e-12
    assert min(told) < 0 and sum(told) == len(trees["on"].leaves)


def test_a_fault_past_the_mismatch_is_found(launch: Callable[[str], Launch]) -> None:
    trees = walk(launch, 2, "lookup", peeks=True)
    assert trees["on"].admission["refill"]["expanded"]
    assert distance(law(trees["on"]), law(trees["off"])) > 1e-6


def test_state_that_leaks_between_requests_is_not_admitted(launch: Callable[[str], Launch]) -> None:
    checks = walk(launch, 2, "lookup", leaks=True)["on"].admission
    assert not checks["ok"] and not checks["replay"]["ok"] and checks["restarts"] == []


def test_randomness_past_the_chooser_is_not_admitted(launch: Callable[[str], Launch]) -> None:
    checks = walk(launch, 1, "lookup", random_state_changed=1)["on"].admission
    assert not checks["ok"] and not checks["randomness"]["ok"]


def test_a_refused_configuration_ends_every_lane(launch: Callable[[str], Launch]) -> None:
    with pytest.raises(WorkerRefused), Lanes(launch, 2) as lanes:
        lanes.open(Opening(configuration={"adapter": "none"}, model={}, prompt=[0]))


@pytest.mark.parametrize("first", [None, 1, 2])
def test_the_oracle_is_asked_within_a_window_too(launch: Callable[[str], Launch], first: int | None) -> None:
    plan = Plan(arms=ARMS[:1], first=first, checks=Checks(sample=6))
    for reaches_back in (False, True):
        tree = walk(launch, 1, "windowed", plan=plan, reaches_back=reaches_back)["off"]
        oracle = tree.admission["oracle"]
        # A sampler that goes back on its first token has another law than its parts would have.
        assert oracle["ok"] != reaches_back, oracle
        assert tree.admission["ok"] != reaches_back
        assert oracle["outcomes"] == len(law(tree)) or reaches_back


def test_the_tokens_of_the_heaviest_leaves_are_spelled(
    launch: Callable[[str], Launch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices, "SPELLED", 1)
    # The first choice of the lighter path is the likelier one.
    tree = Tree(
        leaves=tuple(
            TreeLeaf(choices=path, p=p, outcome=Decoded(tokens=path, finish=None), proposals=0, accepted=0)
            for path, p in (((0, 1), (0.75, 0.25)), ((2,), (0.25,)))
        ),
        runs=2,
        unexplored=0.5,
        admission={},
        seconds=0.0,
    )
    with Lanes(launch, 1) as workers:
        workers.open(opening("windowed"))
        found = choices._spelled(workers.workers[0], tree, tree, None, [3])
    assert found.texts == {2: "<2>", 3: "<3>"} and found.ends == (3,)


class Counting(Journal):
    """Counts what it is given."""

    kept = 0

    def keep(self, request: dict[str, Any], part: dict[str, Any]) -> None:
        super().keep(request, part)
        self.kept += 1


def interrupted(launch: Callable[[str], Launch], path: Path, parts: int) -> None:
    """Walk until so many parts are finished, then stop as a kill would."""
    left = [parts]

    def advance(arm: str, leaves: int) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise Cut

    journal = Journal(path, "this")
    with pytest.raises(Cut):
        walk(launch, 2, "lookup", journal=journal, advance=advance)
    journal.close()


def test_a_killed_walk_goes_on_where_it_was(launch: Callable[[str], Launch], tmp_path: Path) -> None:
    path = tmp_path / "walk.jsonl"
    whole = Counting(tmp_path / "whole.jsonl", "this")
    expected = walk(launch, 2, "lookup", journal=whole)
    whole.close(remove=True)
    assert not (tmp_path / "whole.jsonl").exists()
    interrupted(launch, path, 6)
    with path.open("ab") as file:
        file.write(b'{"key":"half a li')
    journal = Counting(path, "this")
    there = journal.finished
    assert 6 <= there < whole.kept
    trees = walk(launch, 2, "lookup", journal=journal)
    journal.close()
    assert journal.kept == whole.kept - there
    assert all(same(trees[arm], expected[arm]) for arm in ("off", "on"))
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_the_journal_of_another_walk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "walk.jsonl"
    Journal(path, "this").close()
    with pytest.raises(UsageError, match="another walk"):
        Journal(path, "other")
    path.write_text("not a journal\n")
    with pytest.raises(UsageError, match="no journal"):
        Journal(path, "this")
    assert path.read_text() == "not a journal\n"


@pytest.mark.parametrize(
    "line",
    [b'{"key":"a"}', b'{"key":"a","part":null}', b'{"key":"a","part":{}}', b'{"part":{"runs":1}}', b"[]"],
)
def test_a_journal_ends_where_a_line_is_no_part(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "walk.jsonl"
    first, second = {"prefixes": None}, {"prefixes": []}
    journal = Journal(path, "this")
    journal.keep(first, {"runs": 1})
    journal.close()
    sound = path.read_bytes()
    path.write_bytes(sound + line + b"\n")
    journal = Journal(path, "this")
    assert (journal.part(first), journal.finished) == ({"runs": 1}, 1)
    assert path.read_bytes() == sound
    journal.keep(second, {"runs": 2})
    journal.close()
    journal = Journal(path, "this")
    assert journal.part(second) == {"runs": 2}
    journal.close()


def test_a_journal_in_use_is_not_shared(tmp_path: Path) -> None:
    path = tmp_path / "walk.jsonl"
    held = Journal(path, "this")
    with pytest.raises(WrongState, match="another walk is writing"):
        Journal(path, "this")
    spare = Journal(path, "this", required=False)
    spare.keep({"arm": 1}, {"leaves": []})
    spare.close(remove=True)
    held.close()
    assert len(path.read_bytes().splitlines()) == 1


def test_samples_are_spaced() -> None:
    leaves = [{"at": at} for at in range(10)]
    assert [leaf["at"] for leaf in spaced(leaves, 4)] == [0, 3, 6, 9]
    assert spaced(leaves, 1) == leaves[:1] and spaced(leaves, 0) == [] and spaced(leaves, 20) == leaves
