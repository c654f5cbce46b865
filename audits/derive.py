"""Steps 11 to 13: everything derived again, and compared with what the study claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from audits import RULES
from audits.closing import DECISIONS
from audits.compare import compare, compare_premise, differences, values
from audits.decide import Derived, decide
from audits.exact import arms_of, decide_exact
from audits.fault import Found
from audits.predict import channel, named, rule_of, status
from audits.premise import Tested, derive_premise
from audits.records import Records
from audits.report import Outcome
from audits.study import Study
from audits.third_decide import add_third, consequent

Json = dict[str, Any]


@dataclass(slots=True)
class Derivation:
    """Everything that could be derived from authenticated records."""

    draws: dict[str, Derived] = field(default_factory=dict)
    """By configuration of a stage of draws."""
    exact: dict[str, Derived] = field(default_factory=dict)
    """By configuration of the exact stage."""
    premise: dict[str, Tested] = field(default_factory=dict)
    """By configuration on which the premise is tested."""

    @property
    def nothing(self) -> bool:
        """Whether nothing could be derived."""
        return not (self.draws or self.exact)

    def verdicts(self, of: str) -> dict[str, str]:
        """The verdicts of a channel, by configuration; of mechanism hypotheses, their statuses by draws.

        Predictions rest on them: one that a ceiling left open is that of a lost configuration.
        """
        if of in ("records", "hypothesis"):
            key = "verdict" if of == "records" else "status"
            return {name: one.row[of][key] for name, one in self.draws.items() if of in one.row}
        return {
            name: consequent(one.row) for name, one in (self.exact if of == "exact" else self.draws).items()
        }


def derive_decisions(study: Study, records: Records, found: Found) -> Derivation:
    """Step 11: every configuration whose units are authenticated, and the test of the premise."""
    derived = Derivation()
    left: list[str] = []

    def usable(name: str, *channels: str) -> bool:
        units = {unit for of in channels for unit in study.pair(name, of)}
        if bad := bool(units & records.bad):
            left.append(f"{name} ({' and '.join(channels)})")
        return not bad

    for configuration in study.drawn:
        if usable(configuration["id"], "draws"):
            drawn = derived.draws[configuration["id"]] = decide(study, records, configuration)
            add_third(study, records, study.pair(configuration["id"], "draws"), drawn.row)
    tested = {configuration["id"] for configuration in study.tested}
    for configuration in study.walked:
        name = configuration["id"]
        if not usable(name, "exact"):
            continue
        arms = arms_of(study, records, name)
        one = derived.exact[name] = decide_exact(study, configuration, arms)
        add_third(study, records, study.pair(name, "exact"), one.row)
        if name in tested and name in derived.draws:
            verdict = one.row["verdict"]
            derived.premise[name] = derive_premise(study, records, configuration, arms, verdict)
    found.applied += len(derived.draws) + len(derived.exact) + len(derived.premise)
    if left:
        found.waiting = f"not derived, for their records are not authenticated (step 7): {', '.join(left)}"
    return derived


def derive_predictions(study: Study, derived: Derivation, found: Found) -> dict[str, str]:
    """Step 12: every prediction whose configurations were derived."""
    predicted: dict[str, str] = {}
    for prediction in study.predictions:
        claim = prediction["claim"]
        of = channel(claim)
        verdicts = derived.verdicts(of)
        if verdicts.keys() >= set(named(claim)):
            rule = rule_of(claim, study.protocol["decision"]["rule"])
            predicted[prediction["id"]] = status(claim, verdicts, rule)
            found.applied += 1
        else:
            found.waiting = "some predictions rest on configurations that were not derived"
    return predicted


def _ids(rows: Iterable[Json]) -> list[str]:
    return [row["id"] for row in rows]


def _frame(study: Study, seal: str | None) -> Json:
    """What decisions say besides the rows of configurations and predictions, which stand by their ids."""
    frame: Json = {
        "schema": "prereg/decisions/v1", "study": study.id, "seal": seal, "rules": RULES,
        "alpha": study.protocol["alpha"], "m": len(study.drawn),
        "configurations": _ids(study.drawn), "predictions": _ids(study.predictions),
    }  # fmt: skip
    if study.stages("exact"):
        sealed = study.protocol["exact"]
        premise = None
        if sealed["premise_alpha"] is not None:
            alpha, tested = sealed["premise_alpha"], study.tested
            premise = {"alpha": alpha, "m": len(tested), "configurations": _ids(tested)}
        frame["exact"] = {
            "tolerance": sealed["tolerance"],
            "configurations": _ids(study.walked),
            "premise": premise,
        }
    return frame


def _frame_of(claimed: Json) -> Json:
    """The same of a decisions file."""
    frame = claimed | {key: _ids(claimed[key]) for key in ("configurations", "predictions")}
    if "exact" in claimed:
        exact = claimed["exact"] | {"configurations": _ids(claimed["exact"]["configurations"])}
        if exact["premise"] is not None:
            exact["premise"] = exact["premise"] | {"configurations": _ids(exact["premise"]["configurations"])}
        frame["exact"] = exact
    return frame


def _rows(claimed: Json | None, *path: str) -> dict[str, Json]:
    """The claimed rows at a path, by id; none where nothing is claimed."""
    value: Any = claimed
    for key in path:
        value = (value or {}).get(key)
    return {row["id"]: row for row in value or ()}


def compare_decisions(
    study: Study,
    claimed: Json | None,
    seal: str | None,
    derived: Derivation,
    predicted: dict[str, str],
    outcome: Outcome,
    found: Found,
) -> None:
    """Step 13: the claims against what was derived; fills the report's lists."""
    if claimed is not None:
        for difference in differences(_frame_of(claimed), _frame(study, seal)):
            found.fault(difference, file=DECISIONS)

    def compare_rows(
        rows: dict[str, Json], ones: dict[str, Any], key: str, how: Callable[[Json, Any], list[str]], of: str
    ) -> list[Json]:
        listed: list[Json] = []
        for name, one in ones.items():
            row = rows.get(name)
            wrong = ["not claimed"] if row is None else how(row, one)
            found.applied += values(one.row)
            listed.append({
                "id": name,
                key: one.row[key],
                "claimed": None if row is None else row[key],
                "agrees": not wrong,
                "differences": wrong,
            })  # fmt: skip
            if claimed is not None:
                for difference in wrong:
                    found.fault(f"{of}{name} {difference}", file=DECISIONS)
        return listed

    rows = _rows(claimed, "configurations")
    outcome.configurations += compare_rows(rows, derived.draws, "verdict", compare, "")
    if study.stages("exact"):
        rows = _rows(claimed, "exact", "configurations")
        outcome.exact = compare_rows(rows, derived.exact, "verdict", compare, "exact ")
        if study.tested:
            rows = _rows(claimed, "exact", "premise", "configurations")
            outcome.premise = compare_rows(rows, derived.premise, "status", compare_premise, "premise ")
    statuses = {name: row["status"] for name, row in _rows(claimed, "predictions").items()}
    for name, status_ in predicted.items():
        said = statuses.get(name)
        agrees = said == status_
        outcome.predictions.append({"id": name, "status": status_, "claimed": said, "agrees": agrees})
        found.applied += 1
        if claimed is not None and not agrees:
            found.fault(f"prediction {name}: claimed {said}, derived {status_}", file=DECISIONS)
