"""`kill -9` of `seal`, `analyse` and `audit` at their durable steps; then it is run again.

A killed `analyse` or `audit` is completed by the same verb. What a killed `seal` leaves is refused by name,
with the command that takes it away or goes on. After that all is sound.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "unit"), str(HERE.parent / "tamper")]

import inject  # noqa: E402
import study_fixture  # noqa: E402
import verbs  # noqa: E402
from test_collect_kit import git  # noqa: E402

POINTS = int(os.environ.get("KILL_POINTS", "12"))
WHO = {"seal": "ada", "collect": "col", "analyse": "ada", "audit": "rex"}
LIFE = ("seal", "collect", "analyse", "audit")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """For each verb, keys and a repository in which it comes next; and where the builds are."""
    builds = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(builds))
        assert verbs.prereg("build", "plain").code == 0
        home = tmp_path_factory.mktemp("study") / "home"
        paths = study_fixture.make_study(home, draws=40, rows=10, shard_requests=2)
        found = {"builds": builds}
        for verb in LIFE:
            found[verb] = tmp_path_factory.mktemp(verb) / "home"
            shutil.copytree(home, found[verb], symlinks=True)
            done = verbs.run(verb, paths.root, WHO[verb], {})
            assert done.code == 0, done.said
        yield found


def points(verb: str, steps: list[str]) -> list[tuple[str, int]]:
    """Before each step, and in the middle of those that have one; a seeded choice where few are asked for."""
    found = [(kind, at) for at, name in enumerate(steps, 1) for kind in ("before", "torn")]
    found = [(kind, at) for kind, at in found if kind == "before" or steps[at - 1] in inject.TORN]
    # Between the two renames of the signed head it does not match its signature: this is always tried.
    last = len(steps) - steps[::-1].index("replace")
    count = max(2, POINTS // 5)
    return [("before", last), *(found if count >= len(found) else random.Random(verb).sample(found, count))]


def follow(done: verbs.Done, study: Path, env: dict[str, str]) -> bool:
    """Do what a refusal says, or what `verify` then says; whether it said something."""
    for said in (done.said, verbs.run("verify", study, "", env).said):
        if (told := re.search(r"next: +(?:cd \S+ && )?(rm [^,)\n]+)", said)) is not None:
            subprocess.run(told[1], shell=True, cwd=study, check=True)
            return True
        if "next:  prereg collect" in said:  # it signs and commits what a killed seal entered
            verbs.run("collect", study, WHO["collect"], env)
            return True
    return False


@pytest.mark.parametrize("verb", ["seal", "analyse", "audit"])
def test_it_can_be_run_again(
    verb: str, homes: dict[str, Path], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("group", f"kill -9 of {verb}")
    env = {"PREREG_CACHE": str(homes["builds"])}

    def study(name: str) -> Path:
        shutil.copytree(homes[verb], tmp_path / name, symlinks=True)
        return tmp_path / name / "repo" / "studies" / "coin"

    alone = verbs.run(verb, study("alone"), WHO[verb], env, before=partial(inject.arm, tmp_path / "log"))
    assert alone.code == 0, alone.said
    for kind, at in points(verb, (tmp_path / "log").read_text().split()):
        place = study("home")
        before = partial(inject.arm, tmp_path / "again", at, torn=kind == "torn")
        done = verbs.run(verb, place, WHO[verb], env, before=before)
        assert done.code == -9, done.said
        for _ in range(6):
            done = verbs.run(verb, place, WHO[verb], env)
            if done.code == 0 or verb != "seal" or not follow(done, place, env):
                break
        # A kill after the last step leaves nothing to do.
        assert done.code in (0, 4), f"{kind} {at}: {done.said}"
        done = verbs.run("verify", place, "", env)
        assert done.code == 0, f"{kind} {at}: {done.said}"
        assert git(place.parent.parent, "status", "--porcelain") == "", f"{kind} {at}"
        shutil.rmtree(tmp_path / "home")
