"""`kill -9` of every verb but `collect` at its durable steps; then the same command is run again.

It completes what was begun, or refuses and says what takes it away or goes on. After that the ledger has what
a run that is left alone makes of it, and not twice; all is sound and committed. `KILL_POINTS` says how many
of the points of each verb are tried; each of them is counted in the table.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import inject  # noqa: E402
import lives  # noqa: E402
import lives_second  # noqa: E402
import stamps  # noqa: E402
import verbs  # noqa: E402
from later import VERBS, Place, follow  # noqa: E402
from test_collect_kit import git  # noqa: E402
from timestamp_fixture import serve  # noqa: E402

EACH = max(4, int(os.environ.get("KILL_POINTS", "12")) // 8)
"""Points of a verb."""
AGAIN = 6
"""Runs that may be needed, with what each of them says is next."""
TRUST = ("trust/allowed_signers", "trust/roles.json", "trust/revocations.json")
Make = Callable[[str, Path], Place]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Makes a place, in a new folder, in which a verb comes next."""
    top = tmp_path_factory.mktemp("lives")
    builds, states = top / "builds", top / "states"

    def save(state: str) -> None:
        shutil.copytree(top / "x", states / state, symlinks=True, copy_function=lives.link_or_copy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(builds))
        assert verbs.prereg("build", "plain").code == 0
    (top / "bare").mkdir()
    lives_second.signed_life(top / "x", top / "bare", builds, save, edition=3)
    with serve(stamps.authority().stamp) as url:

        def made(name: str, home: Path) -> Place:
            shutil.copytree(states / VERBS[name].state, home, symlinks=True, copy_function=lives.link_or_copy)
            place = Place(home=home, builds=builds, url=url, archive=top / "archive")
            VERBS[name].prepare(place)
            return place

        yield made


def points(verb: str, steps: list[str]) -> list[tuple[inject.Part, int]]:
    """Before each step, in the middle of those that have one, after the last; a seeded choice of few."""
    parts: tuple[inject.Part, ...] = ("before", "torn")
    found = [(kind, at) for at, name in enumerate(steps, 1) for kind in parts]
    found = [(kind, at) for kind, at in found if kind == "before" or steps[at - 1] in inject.TORN]
    # Tried always: between the two renames of the signed head it does not match its signature, a line of the
    # ledger is torn, and nothing is left to do.
    first: list[tuple[inject.Part, int]] = [("before", len(steps) - steps[::-1].index("replace"))]
    first += [("after", len(steps))]
    first += [("torn", steps.index("write") + 1)] if "write" in steps else []
    rest = [point for point in found if point not in first]
    return [*first, *random.Random(verb).sample(rest, min(len(rest), max(0, EACH - len(first))))]


class TooLate(Exception):
    """It had fewer steps than the run that was left alone, by what that one's memory was cleared of."""


def entries(place: Place) -> list[str]:
    """The types of the ledger's entries."""
    if not (ledger := place.study / "ledger.jsonl").exists():
        return []
    return [json.loads(line)["type"] for line in ledger.read_bytes().splitlines()]


def what_is_wrong(verb: str, place: Place, wanted: list[str], kill: Callable[[], object]) -> str | None:
    """Kill the verb, run it again, and say what is not as it should be. Raises TooLate if it had ended."""
    command = VERBS[verb].arguments(place)
    ledger = place.study / "ledger.jsonl"
    before = ledger.read_bytes() if ledger.exists() else b""
    done = place.run(*command, before=kill)
    if done.code == 0:
        raise TooLate
    if done.code != -9:
        return f"was not killed: {done.said}"
    for _ in range(AGAIN):
        done = place.run(*command)
        # A kill after the last step leaves nothing to do: that is said, and what is next is the study's.
        if done.code in (0, VERBS[verb].done):
            fault = unfinished(verb, place, wanted, before)
            if done.code == 0 or fault is None:
                return fault
        if (then := follow(done.said, command, place, VERBS[verb].who)) is None:
            break
        command = then
    return f"exit code {done.code}: {done.said}"


def unfinished(verb: str, place: Place, wanted: list[str], before: bytes) -> str | None:
    """Say what is not as it should be, once the verb has done what it was to do."""
    ledger = place.study / "ledger.jsonl"
    if not VERBS[verb].settled(place):
        return "trust/ does not say it"
    if entries(place) != wanted or not ledger.read_bytes().startswith(before):
        return f"the ledger has {entries(place)}"
    checked = place.run("verify", str(place.study))
    if checked.code != 0:
        return checked.said
    # A change of trust/ is its owner's to commit; whatever else lies about is left by the kill.
    lying = git(place.repository, "status", "--porcelain", "-uall").splitlines()
    return "; ".join(line for line in lying if line[3:] not in TRUST) or None


@pytest.mark.parametrize("verb", VERBS)
def test_it_can_be_run_again(
    verb: str, make: Make, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("group", f"kill -9 of {verb}")
    alone = make(verb, tmp_path / "alone")
    done = alone.run(*VERBS[verb].arguments(alone), before=partial(inject.arm, tmp_path / "log"))
    assert done.code == 0, done.said
    steps, wrong = (tmp_path / "log").read_text().split(), {}
    killed = 0
    for kind, at in points(verb, steps):
        place = make(verb, tmp_path / "home")
        kill = partial(inject.arm, tmp_path / "again", at, kind)
        with contextlib.suppress(TooLate):
            if fault := what_is_wrong(verb, place, entries(alone), kill):
                wrong[f"{kind} {at} {steps[at - 1]}"] = fault
            killed += 1
        shutil.rmtree(tmp_path / "home")
    record_property("points", killed)
    record_property("held", killed - len(wrong))
    assert killed
    assert not wrong, "\n".join(f"{point}: {fault}" for point, fault in wrong.items())
