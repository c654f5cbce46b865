"""Every folder beside this file is a fault: `fault.py` says why it must be caught, by whom, and commits it.

A fault has
- a docstring: why it must be caught;
- CAUGHT_BY: the verbs of prereg, and `auditor`, each of which must refuse;
- NAMED: what every refusal must name, or {verb: what};
- apply(study, tools): commits it in a fresh copy of the study's repository, and may return another path;
and where it needs them
- AT: how far the study has come: `draft`, `sealed`, `collected`, `analysed`, or `audited` (the default);
- STUDY: `exact`, a study with an exact stage, whose trees are written down; `signed` or `second`, studies of
  edition 2 (lives_second.py), whose states are more; `third` or `contained`, of edition 3 (lives_third.py),
  and `heads` (lives_heads.py);
- EXIT: {verb: exit code} where it is not 1; KEY: who runs a verb that signs;
- ENV: variables of whoever checks (`{home}` is the folder of keys and repository);
- OPEN: {verb: why} for a verb of CAUGHT_BY that does not refuse it yet; once it does, this has to go.

The studies under attack are real in all their parts: drafted, sealed, collected, analysed and audited by
prereg's own verbs, each with its own key.
"""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tools
import verbs
from lives import KEYS, LIFE, copy_of

HERE = Path(__file__).resolve().parent
FAULTS = sorted(p.parent.name for p in HERE.glob("*/fault.py"))


Places = Callable[[str, str], Path]
STATES = [
    *(("", state) for state in LIFE[1:]),
    ("exact", "audited"),
    *(("signed", state) for state in ("first", "amended", "stamped", "relocated", "closed")),
    ("second", "audited"),
    *(("third", state) for state in ("collected", "analysed", "audited")),
    ("contained", "collected"),
    *(("heads", state) for state in ("sealed", "collected", "audited")),
]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fault_{name}", HERE / name / "fault.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("env", [{}, {"TZ": "Pacific/Auckland"}], ids=["here", "auckland"])
@pytest.mark.parametrize(("kind", "state"), STATES)
def test_without_a_fault_all_are_content(
    kind: str, state: str, env: dict[str, str], place_of: Places, tmp_path: Path
) -> None:
    study = copy_of(place_of(kind, state), tmp_path / "copy")
    done = verbs.run("verify", study, "", env)
    assert done.code == 0, done.said
    expected = 0 if state in ("audited", "analysed", "closed") else 3
    for done in (verbs.run("auditor", study, "", env), verbs.auditor_alone(study, env)):
        assert done.code == expected, done.said
        assert "failed" not in done.said


def test_each_fault_says_why_and_who() -> None:
    assert len(FAULTS) >= 330
    for name in FAULTS:
        fault = load(name)
        assert len((fault.__doc__ or "").split()) >= 4, name
        assert fault.CAUGHT_BY and fault.NAMED, name


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_caught(name: str, life: dict[str, Path], place_of: Places, tmp_path: Path) -> None:
    fault: Any = load(name)
    place = place_of(getattr(fault, "STUDY", ""), getattr(fault, "AT", "audited"))
    study = copy_of(place, tmp_path / "copy")
    study = fault.apply(study, tools) or study
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
