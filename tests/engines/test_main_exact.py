"""The exact stage of the template `main`: all twenty-six configurations, from the draft to the audit."""

from __future__ import annotations

import dataclasses
import json
import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest

from harness.oracle.naive import canonical
from harness.session import Session
from prereg.analyse.laws import law_of
from prereg.analyse.run import analyse_study
from prereg.audit.run import AuditRun, audit_study
from prereg.codec.convert import to_json
from prereg.collect.executors.base import opening_of
from prereg.collect.runner import collect_study
from prereg.collect.runtime import environment_of, interpreter
from prereg.model.exact import ExactDecision
from prereg.model.law import Decoded
from prereg.model.study import Protocol
from prereg.model.tree import UnitTree
from prereg.model.verdict import Decisions
from prereg.seal.evidence import exact_trees
from prereg.seal.verify import verify_study
from tests.engines.main_study import AUTHOR, DEPART, REVIEWER, sealed
from tests.unit.silent import Silent

pytestmark = pytest.mark.engines

CORE_SECONDS = 1200
"""Ten minutes of two cores."""

Law = dict[str, float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """The study once it is audited."""

    protocol: Protocol
    decisions: Decisions
    trees: dict[str, UnitTree]
    audit: AuditRun
    core_seconds: float
    """Processor time of collecting and analysing."""

    def decision(self, name: str) -> ExactDecision:
        assert self.decisions.exact is not None
        (found,) = (c for c in self.decisions.exact.configurations if c.id == name)
        return found

    def law(self, name: str, arm: str) -> Law:
        law = law_of(self.trees[f"exact.{name}.{arm}"])
        return {canonical(to_json(outcome)): p for outcome, p in law.items()}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    made = sealed(tmp_path_factory.mktemp("main"), exact=True)
    paths, key, protocol = made.paths, made.key, made.protocol
    before = core_seconds()
    result = collect_study(paths, key=key, principal=AUTHOR, progress=Silent(), workers=2)
    assert (result.complete, dict(result.invalid)) == (True, {})
    decisions = analyse_study(paths, key=key, principal=AUTHOR)
    spent = core_seconds() - before
    audit = audit_study(paths, key=made.reviewer, principal=REVIEWER)
    trees = exact_trees(verify_study(paths))
    return Study(protocol=protocol, decisions=decisions, trees=trees, audit=audit, core_seconds=spent)


def core_seconds() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def test_it_takes_less_than_ten_minutes_of_two_cores(study: Study) -> None:
    assert study.core_seconds < CORE_SECONDS


def test_each_verdict_is_as_registered(study: Study) -> None:
    names = {c.id for c in study.protocol.configurations}
    assert len(names) == 26
    expected = dict.fromkeys(names, "EQUAL_WITHIN_TOLERANCE") | dict.fromkeys(DEPART, "DEPARTS")
    expected["hf17-3"] = "INCONCLUSIVE"
    assert {name: study.decision(name).verdict for name in names} == expected
    assert {p.id: p.status for p in study.decisions.predictions} == {f"e{i}": "HELD" for i in range(1, 6)}


def test_the_auditor_derives_the_same(study: Study) -> None:
    assert study.audit.result == "AGREES", study.audit.text


def test_every_tree_is_whole_and_its_off_arm_the_oracle_s(study: Study) -> None:
    for tree in study.trees.values():
        assert tree.meta.unexplored == 0
    for c in study.protocol.configurations:
        oracle = study.decision(c.id).oracle
        assert oracle is not None and oracle.largest < 1e-6, c.id


def test_nothing_is_proposed_under_all_the_truncations_at_once(study: Study) -> None:
    found = study.decision("hf17-3")
    assert (found.reasons, found.proposals) == (("nothing-proposed",), 0)


def test_the_earlier_release_departs_only_by_outcomes_longer_than_the_horizon(study: Study) -> None:
    off, on = (law_of(study.trees[f"exact.hf12-p2.{arm}"]) for arm in ("off", "on"))
    longer = {o: p for o, p in on.items() if isinstance(o, Decoded) and len(o.tokens) > 3}
    assert not longer.keys() & off.keys()
    found = study.decision("hf12-p2")
    assert found.tv_lower == pytest.approx(math.fsum(longer.values()), abs=1e-6)
    assert found.witness_mass == pytest.approx(math.fsum(longer.values()), abs=1e-12)


def registered() -> list[tuple[str, str]]:
    """Configuration and hypothesis."""
    value = json.loads((files("prereg.draft") / "templates" / "main" / "hypotheses.json").read_bytes())
    return [(each["configuration"], each["hypothesis"]) for each in value["configurations"]]


@contextmanager
def opened(protocol: Protocol, name: str) -> Iterator[Session]:
    configuration = protocol.configuration(name)
    with Session(str(interpreter(environment_of(configuration.build)))) as session:
        session.ask("open", cwd=None, **opening_of(protocol, configuration).fields())
        yield session


def distance(a: Law, b: Law) -> float:
    return math.fsum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys()) / 2


def test_the_decisions_say_so_too(study: Study) -> None:
    found = {c.id: study.decision(c.id).hypothesis for c in study.protocol.configurations}
    assert {name: each.id for name, each in found.items() if each is not None} == dict(registered())
    for each in found.values():
        assert each is None or (each.status == "MATCHES" and each.null_tv_lower > 1e-3)


@pytest.mark.parametrize(("name", "hypothesis"), registered())
def test_a_registered_hypothesis_is_the_recorded_law(study: Study, name: str, hypothesis: str) -> None:
    with opened(study.protocol, name) as session:
        found: list[dict[str, Any]] = session.ask("mechanism", hypothesis=hypothesis).ok["law"]
    law = {canonical(m["outcome"]): float(m["p"]) for m in found}
    assert distance(law, study.law(name, "on")) <= 1e-6
    assert distance(law, study.law(name, "off")) > 1e-3
