"""A small sealed study whose coin misbehaves at one seed, and what its collection left behind."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import study_fixture
import verbs
from test_collect_kit import draws_of, expected_draws, git

from prereg.collect.environments import fingerprints
from prereg.seal.build import seal_study
from prereg.store.layout import StudyPaths

FIRST_SEED = 5_000
BAD_SEED = FIRST_SEED + 5
"""The second request of the second unit, `main.fair.new`."""
UNITS, DRAWS = 4, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A copy of the repository with its keys."""

    paths: StudyPaths
    env: dict[str, str]

    def start(self, before: Callable[[], object] = lambda: None, more: Sequence[str] = ()) -> verbs.Running:
        """Begin to collect."""
        key = self.paths.repository.parent / "keys" / "col"
        arguments = ["collect", str(self.paths.root), "--workers", "2", "--key", str(key), *more]
        return verbs.start(*arguments, env=self.env, before=before)

    def collect(self, before: Callable[[], object] = lambda: None, more: Sequence[str] = ()) -> verbs.Done:
        """Collect to the end."""
        return self.start(before, more).wait()

    def break_off(self, before: Callable[[], object] = lambda: None) -> None:
        """Begin to collect, and kill that once two shards are stored; some are missing then."""
        running = self.start(before)
        until = time.monotonic() + 60
        while self.paths.ledger.read_bytes().count(b'"shard-stored"') < 2 and time.monotonic() < until:
            time.sleep(0.01)
        running.kill()
        assert running.wait().code == -signal.SIGKILL

    def faults(self) -> dict[str, int]:
        """Draws of valid units that are lost, and draws or seeds that are there twice."""
        found, wanted = draws_of(self.paths), expected_draws(self.paths)
        there = {unit: set(found.get(unit, ())) for unit in wanted}
        lost = sum(len(set(wanted[unit]) - there[unit]) for unit in wanted)
        doubled = sum(len(found.get(unit, ())) - len(there[unit]) for unit in wanted)
        foreign = sum(len(there[unit] - set(wanted[unit])) for unit in wanted)
        return {"lost": lost, "doubled": doubled + foreign}

    def check_sound(self) -> None:
        """Everything verifies, by the auditor's word too, and is committed; nothing lies about."""
        done = verbs.run("verify", self.paths.root, "", self.env)
        assert done.code == 0, done.said
        done = verbs.run("auditor", self.paths.root, "", self.env)
        # 3: nothing is decided yet, and nothing is wrong.
        assert done.code == (0 if self.paths.decisions.exists() else 3), done.said
        assert git(self.paths.repository, "status", "--porcelain") == ""


def make_desk(
    place: Path, builds: Path, prologue: str = "", plan: Mapping[str, Any] | None = None, **ceilings: float
) -> Desk:
    """A sealed study; `prologue` is run by its command before each request, with `arm` and `seed` set.

    `plan` is what its protocol says otherwise than that of edition 1.
    """
    script = study_fixture.COIN.replace(
        "    arm, bias, seed, rows = ",
        "    arm, seed = sys.argv[1], int(sys.argv[3])\n"
        + "".join(f"    {line}\n" for line in prologue.splitlines())
        + "    arm, bias, seed, rows = ",
    )
    paths = study_fixture.make_study(place, draws=DRAWS, rows=1, shard_requests=2, first_seed=FIRST_SEED)
    (paths.root / "coin.py").write_text(script)
    protocol = paths.root / "protocol.json"
    value = {**json.loads(protocol.read_text()), **(plan or {})}
    value["ceilings"].update(ceilings)
    protocol.write_text(json.dumps(value, indent=1))
    study_fixture.git(paths.repository, "commit", "-q", "-a", "--allow-empty", "-m", "Draft")
    seal_study(
        paths,
        key=study_fixture.signing_key(paths),
        principal="ada@example.org",
        environments=fingerprints(["plain"]),
    )
    return Desk(paths=paths, env={"PREREG_CACHE": str(builds), "TMPDIR": str(place)})


def copy_of(desk: Desk, to: Path) -> Desk:
    """The same study in a place of its own."""
    home = desk.paths.repository.parent
    shutil.copytree(home, to, symlinks=True)
    paths = StudyPaths(root=to / desk.paths.root.relative_to(home))
    return Desk(paths=paths, env={**desk.env, "TMPDIR": str(to)})
