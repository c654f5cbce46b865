"""`prereg check`: everything that can be known about a study before it has data. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prereg.codec.convert import read_authored
from prereg.codec.overlap import overlaps
from prereg.codec.study_files import AUTHORED, BLANK, HYPOTHESES, parse_study
from prereg.draft.findings import Finding
from prereg.draft.lint_beside import beside_findings
from prereg.draft.lint_exact import exact_findings
from prereg.draft.lint_signers import signer_findings
from prereg.draft.lint_size import shard_size_findings
from prereg.draft.lint_tries import tries_findings
from prereg.draft.startup import Startup, startup_of
from prereg.errors import PreregError
from prereg.model.study import Channel, Configuration, Protocol, Study
from prereg.seal.own_files import own_file_problems, own_files
from prereg.stats.beside import MechanismRow, RecordsRow, mechanism_table, records_table
from prereg.stats.budget import budget_of
from prereg.stats.power import PowerRow, Reach, power_table, reach_table
from prereg.stats.premise import PremiseRow, premise_table
from prereg.stats.trees import expected_runs
from prereg.store.files import read_in, read_once
from prereg.store.folder import walk
from prereg.store.layout import StudyPaths
from prereg.store.seeds import repository_spans, span_of

A_BLANK = "a blank to fill"

FILLED_PRINCIPAL = "fill-principal"
"""What the templates have where the author's principal belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The part of alpha that one configuration spends."""

    configuration: str
    B: int
    records: int
    """Those of the bounds that are of record events."""
    level: float
    alpha: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What one unit will take."""

    configuration: str
    channel: Channel
    arm: str
    draws: int
    """0 for a tree."""
    requests: int | None
    """Requests, or the engine runs of a walk, about; None where nothing tells how large the tree is."""
    core_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """All of `prereg check`; `study` is None when the files do not even parse."""

    study: Study | None
    findings: tuple[Finding, ...]
    spent: tuple[Spent, ...] = ()
    power: tuple[PowerRow, ...] = ()
    reach: tuple[Reach, ...] = ()
    premise: tuple[PremiseRow, ...] = ()
    records: tuple[RecordsRow, ...] = ()
    mechanisms: tuple[MechanismRow, ...] = ()
    cost: tuple[CostRow, ...] = ()
    startup: Startup | None = None

    @property
    def ok(self) -> bool:
        """Whether the study may be sealed."""
        return not any(f.severity == "error" for f in self.findings)

    @property
    def core_seconds(self) -> float | None:
        """Seconds of one core for all requests and runs, if every rate is known; nothing else is in it."""
        known = [row.core_seconds for row in self.cost]
        return None if None in known else sum(s for s in known if s is not None)


Rates = Mapping[str, Mapping[str, float]]
"""Requests a second on one core: build, then role of the arm."""


def check_study(paths: StudyPaths, *, rates: Rates, harness_sha256: str) -> CheckReport:
    """Check everything that `seal` relies on; never raises for what is wrong with the study itself."""
    files = {}
    findings: list[Finding] = []
    optional = (HYPOTHESES,) if (paths.root / HYPOTHESES).exists() else ()
    for name in (*AUTHORED, *optional):
        try:
            files[name] = read_once(paths.root / name)
        except PreregError as error:
            remedy = _events_remedy(files, paths) if name == "events.json" else None
            findings.append(Finding(severity="error", what=error.what, where=name, next_step=remedy))
    findings += blanks({**files, **_notes(paths)})
    if not files.keys() >= {*AUTHORED, *optional}:
        return CheckReport(study=None, findings=tuple(findings))
    try:
        study = parse_study(files)
    except PreregError as error:
        return CheckReport(study=None, findings=(*findings, _found(error, "protocol.json")))
    findings += _names(study, paths)
    findings += _own_file_findings(study, paths)
    findings += signer_findings(study, paths)
    findings += _prediction_findings(study)
    findings += _seed_findings(study, paths.studies)
    findings += _oracle_findings(study, harness_sha256)
    reach, power = tuple(reach_table(study)), tuple(power_table(study))
    findings += _reach_findings(study, reach)
    findings += _power_findings(study, power)
    cost, premise = tuple(_cost(study, rates)), tuple(premise_table(study))
    findings += exact_findings(study, premise)
    records, mechanisms = tuple(records_table(study)), tuple(mechanism_table(study))
    findings += beside_findings(study, records, mechanisms)
    findings += _size_findings(study, cost)
    findings += shard_size_findings(study)
    drawn = [(row.configuration, row.arm, row.core_seconds) for row in cost if row.channel == "draws"]
    findings += tries_findings(study, drawn)
    return CheckReport(
        study=study,
        findings=tuple(findings),
        spent=tuple(_spent(study)),
        power=power,
        reach=reach,
        premise=premise,
        records=records,
        mechanisms=mechanisms,
        cost=cost,
        startup=startup_of(study),
    )


def blanks(files: Mapping[str, bytes]) -> list[Finding]:
    """Every blank that the template marked and nobody has filled, with its line."""
    out = []
    for name, data in files.items():
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if BLANK in line or f'"{FILLED_PRINCIPAL}"' in line:
                out.append(
                    Finding(
                        severity="error",
                        what=A_BLANK,
                        where=f"{name}:{number}",
                        next_step=line.strip(),
                    )
                )
    return out


def _events_remedy(files: Mapping[str, bytes], paths: StudyPaths) -> str:
    """How a study gets its events: by enumeration, or by hand where there is no oracle."""
    try:
        protocol = read_authored(files["protocol.json"], "protocol", Protocol, where="protocol.json")
    except (KeyError, PreregError):
        return "prereg events DIR"
    by_hand = protocol.decision.rule == "event-gap"
    return f"write {paths.events} by hand: this study has no oracle" if by_hand else "prereg events DIR"


def _notes(paths: StudyPaths) -> dict[str, bytes]:
    try:
        return {"NOTES.md": read_once(paths.root / "NOTES.md")}
    except PreregError:
        return {}


def _found(error: PreregError, where: str, remedy: str | None = None) -> Finding:
    return Finding(
        severity="error", what=error.what, where=error.where or where, next_step=remedy or error.next_step
    )


def _names(study: Study, paths: StudyPaths) -> Iterator[Finding]:
    if study.protocol.study != paths.name:
        yield Finding(
            severity="error",
            what=f"the study calls itself {study.protocol.study!r}, its folder {paths.name!r}",
            where="protocol.json#/study",
            next_step="rename one of them",
        )


def _own_file_findings(study: Study, paths: StudyPaths) -> Iterator[Finding]:
    named = {entry["file"] for _, entry in own_files(study.protocol) if isinstance(entry["file"], str)}
    if study.protocol.timestamp is not None:
        named.add(study.protocol.timestamp.roots)
    try:
        files = {name: read_in(paths.root, name)[0] for name in walk(paths).sealable() if name in named}
    except PreregError as error:
        yield _found(error, "protocol.json")
        return
    for problem in own_file_problems(study.protocol, files):
        yield _found(problem, "protocol.json")


def _prediction_findings(study: Study) -> Iterator[Finding]:
    if not study.predictions.predictions:
        what = "no prediction is registered: a study must say what it expects"
        remedy = "add one to predictions.json"
        yield Finding(severity="error", what=what, where="predictions.json#/predictions", next_step=remedy)


def _seed_findings(study: Study, studies: Path) -> Iterator[Finding]:
    name = study.protocol.study
    own = [span_of(name, block) for block in study.seeds.blocks]
    try:
        others = repository_spans(studies, without=name)
    except PreregError as error:
        yield _found(error, "seeds.json")
        return
    across = [o for o in overlaps([*own, *others]) if name in (o.study_a, o.study_b)]
    for overlap in [*overlaps(own, within=True), *across]:
        what, remedy = str(overlap), "prereg seeds check"
        yield Finding(severity="error", what=what, where="seeds.json#/blocks", next_step=remedy)


def _oracle_findings(study: Study, harness_sha256: str) -> Iterator[Finding]:
    bound = study.events.harness_sha256
    if bound is not None and bound != harness_sha256:
        yield Finding(
            severity="error",
            what="the reference laws were enumerated by another harness than this one",
            where="events.json#/harness_sha256",
            next_step="prereg events DIR",
        )


def _reach_findings(study: Study, rows: Iterable[Reach]) -> Iterator[Finding]:
    places = {c.id: f"protocol.json#/configurations/{i}" for i, c in enumerate(study.protocol.configurations)}
    for row in rows:
        name, at = row.configuration, places[row.configuration]
        if row.rejection == "none":
            what = f"{name}: no data could reject; the largest D possible is {row.largest_gap:.4f}"
            remedy = "more draws, fewer events, or a predicate"
            yield Finding(severity="error", what=what, where=at, next_step=remedy)
        if not row.exercised:
            what = f"{name}: nothing would be proposed: no drafter, or an arm without speculation"
            yield Finding(severity="error", what=what, where=at)
        if not row.acceptance:
            what = (
                f"{name}: even arms that agree would not be accepted (D {row.expected_gap:.4f}, "
                f"{row.expected_violations} violations expected in the reference arm)"
            )
            yield Finding(severity="error", what=what, where=at)


def _power_findings(study: Study, rows: Iterable[PowerRow]) -> Iterator[Finding]:
    at = "protocol.json#/power"
    weak: dict[str, PowerRow] = {}
    for row in rows:
        power = row.power_at_planned_gap
        if power is not None and power < row.target:
            worst = weak.get(row.configuration)
            if worst is None or power < (worst.power_at_planned_gap or 0):
                weak[row.configuration] = row
    for name, row in weak.items():
        what = (
            f"{name}: a gap of {row.planned_gap} on an event of base rate {row.base_rate:.3g} would be seen "
            f"with probability {row.power_at_planned_gap:.2f}, below the {row.target} aimed at"
        )
        remedy = "more draws, or a larger gap of interest"
        yield Finding(severity="warning", what=what, where=at, next_step=remedy)
    for row in {r.configuration: r for r in rows}.values():
        if row.witness_power is not None and row.witness_power < row.target:
            what = (
                f"{row.configuration}: a witness of mass {row.planned_witness} would be seen "
                f"with probability {row.witness_power:.2f}"
            )
            yield Finding(severity="warning", what=what, where=at, next_step="more draws of the test arm")


def _size_findings(study: Study, rows: Iterable[CostRow]) -> Iterator[Finding]:
    """Walks that nothing bounds, or that their ceiling of time would cut off."""
    ceiling = study.protocol.ceilings.unit_seconds
    for row in rows:
        if row.channel != "exact":
            continue
        name = f"{row.configuration}, {row.arm}"
        if row.requests is None:
            what = f"{name}: how large its tree is nobody knows before; the walk has no bound but its ceiling"
            remedy = "set runs in protocol.json#/exact, or give it a reference law"
            yield Finding(severity="warning", what=what, where="protocol.json#/exact/runs", next_step=remedy)
        elif row.core_seconds is not None and row.core_seconds > ceiling:
            what = f"{name}: about {row.core_seconds:,.0f} s of one core, above the ceiling of {ceiling:,} s"
            remedy = "raise unit_seconds, or bound the walk by runs or mass"
            at = "protocol.json#/ceilings/unit_seconds"
            yield Finding(severity="warning", what=what, where=at, next_step=remedy)


def _spent(study: Study) -> Iterator[Spent]:
    for configuration in study.protocol.drawn():
        budget = budget_of(study, configuration.id)
        yield Spent(
            configuration=configuration.id,
            B=budget.B,
            records=budget.records,
            level=budget.level,
            alpha=budget.B * budget.level,
        )


def _cost(study: Study, rates: Rates) -> Iterator[CostRow]:
    by_id: dict[str, Configuration] = {c.id: c for c in study.protocol.configurations}
    arms = {a.id: a for a in study.protocol.arms}
    for unit in study.protocol.units():
        build = rates.get(by_id[unit.configuration].build, {})
        plan = study.protocol.exact
        requests: int | None
        if plan is not None and study.protocol.is_exact(unit):
            # A walk's runs are requests of one row, whichever arm is walked.
            draws, rate = 0, build.get("test")
            requests = expected_runs(plan, study.events.configurations[unit.configuration])
            channel: Channel = "exact"
        else:
            sampling = study.protocol.sampling_of(unit)
            draws, requests, channel = sampling.draws, sampling.requests, "draws"
            rate = build.get(arms[unit.arm].role)
        yield CostRow(
            configuration=unit.configuration,
            channel=channel,
            arm=unit.arm,
            draws=draws,
            requests=requests,
            core_seconds=requests / rate if rate and requests is not None else None,
        )
