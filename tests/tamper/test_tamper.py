"""Every folder beside this file is a fault: `fault.py` says why it must be caught, by whom, and commits it.

A fault has
- a docstring: why it must be caught;
- CAUGHT_BY: the verbs of prereg, and `auditor`, each of which must refuse;
- NAMED: what every refusal must name, or {verb: what};
- apply(study, tools): commits it in a fresh copy of the study's repository;
and where it needs them
- AT: how far the study has come: `draft`, `sealed`, `collected`, `analysed`, or `audited` (the default);
- STUDY = "exact": it is committed in a study with an exact stage, whose trees are written down;
- EXIT: {verb: exit code} where it is not 1; KEY: who runs a verb that signs;
- ENV: variables of whoever checks (`{home}` is the folder of keys and repository);
- OPEN: {verb: why} for a verb of CAUGHT_BY that does not refuse it yet; once it does, this has to go.

The study under attack is real in all its parts: drafted, sealed, collected, analysed and audited by prereg's
own verbs, each with its own key.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "unit"), str(HERE)]

import exact_fixture  # noqa: E402
import study_fixture  # noqa: E402
import tools  # noqa: E402
import verbs  # noqa: E402

from prereg.analyse.run import analyse_study  # noqa: E402
from prereg.audit.run import audit_study  # noqa: E402

OWN, OWN_CLASS = "own/mine.py", "class Mine:\n    def __call__(self, ids, scores):\n        return scores\n"
FAULTS = sorted(p.parent.name for p in HERE.glob("*/fault.py"))
KEYS = {"seal": "ada", "collect": "col", "analyse": "ada", "audit": "rex"}
LIFE = ("draft", "sealed", "collected", "analysed", "audited")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fault_{name}", HERE / name / "fault.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_own_class(protocol: dict[str, Any]) -> None:
    """`other` runs a processor of the study's own."""
    entry = {"file": OWN, "class": "Mine", "arguments": {}, "sha256": tools.sha(OWN_CLASS.encode())}
    next(c for c in protocol["configurations"] if c["id"] == "other")["features"] = {"processors": [entry]}


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with keys and a repository for each state of one study's life."""
    cache = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREREG_CACHE", str(cache))
        assert verbs.prereg("build", "plain").code == 0
        place = tmp_path_factory.mktemp("life")
        paths = study_fixture.make_study(place, draws=2000, rows=100, shard_requests=5)
        found = {"cache": cache}
        for state, verb in zip(LIFE, (None, "seal", "collect", "analyse", "audit"), strict=True):
            if verb is not None:
                done = verbs.run(verb, paths.root, KEYS[verb], {})
                assert done.code == 0, done.said
            found[state] = tmp_path_factory.mktemp(state) / "copy"
            shutil.copytree(place, found[state], symlinks=True)
    return found


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for a study with an exact stage, analysed and audited."""
    place = tmp_path_factory.mktemp("trees")
    paths = exact_fixture.make_exact_study(place, with_own_class, own={OWN: OWN_CLASS})
    study_fixture.seal(paths)
    exact_fixture.fabricate(paths)
    analyse_study(paths, key=study_fixture.signing_key(paths), principal="ada@example.org")
    run = audit_study(paths, key=study_fixture.signing_key(paths, "rex"), principal="rex@example.org")
    assert run.result == "AGREES", run.text
    return place


def link_or_copy(one: str, two: str) -> object:
    """Objects of git need no copy: they are never changed in place, and a fault that does unlinks first."""
    return os.link(one, two) if "/.git/objects/" in one else shutil.copy2(one, two)


def copy_of(place: Path, to: Path) -> Path:
    """The study in a copy of keys and repository."""
    shutil.copytree(place, to, symlinks=True, copy_function=link_or_copy)
    (study,) = (to / "repo" / "studies").iterdir()
    return study


@pytest.mark.parametrize("env", [{}, {"TZ": "Pacific/Auckland"}], ids=["here", "auckland"])
@pytest.mark.parametrize("state", [*LIFE[1:], "exact"])
def test_without_a_fault_all_are_content(
    state: str, env: dict[str, str], life: dict[str, Path], trees: Path, tmp_path: Path
) -> None:
    study = copy_of(trees if state == "exact" else life[state], tmp_path / "copy")
    done = verbs.run("verify", study, "", env)
    assert done.code == 0, done.said
    expected = 0 if state in ("audited", "analysed", "exact") else 3
    for done in (verbs.run("auditor", study, "", env), verbs.auditor_alone(study, env)):
        assert done.code == expected, done.said
        assert "failed" not in done.said


def test_each_fault_says_why_and_who() -> None:
    assert len(FAULTS) >= 200
    for name in FAULTS:
        fault = load(name)
        assert len((fault.__doc__ or "").split()) >= 4, name
        assert fault.CAUGHT_BY and fault.NAMED, name


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str, life: dict[str, Path], trees: Path, tmp_path: Path) -> None:
    fault: Any = load(name)
    exact = getattr(fault, "STUDY", "") == "exact"
    place = trees if exact else life[getattr(fault, "AT", "audited")]
    study = copy_of(place, tmp_path / "copy")
    fault.apply(study, tools)
    given = {name: text.format(home=tmp_path / "copy") for name, text in getattr(fault, "ENV", {}).items()}
    env = {"PREREG_CACHE": str(life["cache"]), **given}
    waiting = getattr(fault, "OPEN", {})
    assert {*waiting} <= {*fault.CAUGHT_BY}
    try:
        for verb in fault.CAUGHT_BY:
            done = verbs.run(verb, study, getattr(fault, "KEY", KEYS.get(verb, "")), env)
            wrong = fault_of(fault, verb, done)
            assert bool(wrong) == (verb in waiting), f"{verb}: {wrong or 'is caught now'}\n{done.said}"
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "copy")], check=True)
    if waiting:
        pytest.xfail(str(waiting))


def fault_of(fault: Any, verb: str, done: verbs.Done) -> str | None:
    """What is wrong with how a verb refused."""
    named = fault.NAMED[verb] if isinstance(fault.NAMED, dict) else fault.NAMED
    if done.code != getattr(fault, "EXIT", {}).get(verb, 1):
        return f"exit code {done.code}"
    if named not in done.said:
        return f"does not name {named}"
    return "a traceback" if "Traceback" in done.said else None
