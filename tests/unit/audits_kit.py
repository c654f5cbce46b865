"""What the tests of whole studies share."""

from __future__ import annotations

import copy as copying
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits_fixture import Builder
from audits_plan import Plan
from audits_tools import ROOT, make_key, run

from audits.jsonc import parse
from audits.report import Outcome, report_bytes
from audits.run import Options, audit
from audits.schema import Schema


def make_keys(folder: Path) -> Path:
    for name in ("author", "reviewer", "collector", "stranger"):
        make_key(folder, name)
    return folder


@dataclass
class Copy:
    """A copy of the template to tamper with."""

    root: Path
    keys: Path

    @property
    def study(self) -> Path:
        return self.root / "studies" / "tiny"

    def edit(self, path: str, change: Callable[[bytes], bytes]) -> None:
        target = self.study / path
        before = target.read_bytes()
        after = change(before)
        assert after != before, "the tampering changed nothing"
        target.write_bytes(after)

    def drop(self, *paths: str) -> None:
        for path in paths:
            target = self.study / path
            shutil.rmtree(target) if target.is_dir() else target.unlink()


def look(study: Path, **options: Any) -> Outcome:
    trust = study.parent.parent / "trust"
    given = {"signers": trust / "allowed_signers", "roles": trust / "roles.json", "studies": study.parent}
    outcome = audit(Options(study=study, **(given | options)))
    schema = Schema(parse((ROOT / "schemas/v1/audit-report.schema.json").read_bytes()))
    value = parse(report_bytes(outcome.value()))
    assert schema.first_wrong(value) is None, schema.first_wrong(value)
    assert [step["number"] for step in value["steps"]] == list(range(1, 14))
    return outcome


def failed(outcome: Outcome) -> dict[int, str]:
    return {n: found.detail() for n, found in outcome.steps.items() if outcome.status(n) == "failed"}


def commit(copy: Copy) -> None:
    run("git", "add", "-A", cwd=copy.root)
    run("git", "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x", cwd=copy.root)


def on_bytes(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new, 1)


def resumed(builder: Builder, root: Path, plan: Plan) -> Builder:
    """A builder that goes on in a copy of what another one built, after another plan."""
    shutil.copytree(builder.root, root, symlinks=True)
    other = copying.copy(builder)
    other.root, other.folder = root, root / builder.folder.relative_to(builder.root)
    other.lines, other.plan = list(builder.lines), plan
    return other


def change(
    name: str,
    edit: Callable[[Any], Any],
    when: Callable[[Any], bool] = lambda value: True,
    make: Callable[..., Plan] = Plan,
    **options: Any,
) -> Plan:
    """A plan in which one kind of file or entry is changed before it is written and signed."""

    def apply(kind: str, value: Any) -> Any:
        if kind != name or not when(value):
            return value
        value = copying.deepcopy(value)
        changed = edit(value)
        return value if changed is None else changed

    return make(edit=apply, **options)


def put(*path: Any, to: Any) -> Callable[[Any], None]:
    """Set what is at a path of keys."""

    def edit(value: Any) -> None:
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] = to

    return edit


def drop(*path: Any) -> Callable[[Any], None]:
    def edit(value: Any) -> None:
        for key in path[:-1]:
            value = value[key]
        del value[path[-1]]

    return edit
