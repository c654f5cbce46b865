"""Write a page of made-up decisions that shows every verdict: to look at, and for the tests.

python bench/page.py FOLDER
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.synthetic import SEAL, enumerated_family, study, tally_of, tokens
from prereg.analyse.decide import decide
from prereg.analyse.tally import Tally
from prereg.model.law import Crashed, Family, NothingAfter, Outcome, Predicate
from prereg.model.predictions import CountClaim, Prediction, VerdictClaim
from prereg.model.seal import Entry, EntryType, Manifest, Signer
from prereg.model.study import Study, TinyModel
from prereg.report.page import ReportInput, render
from prereg.stats.membership import breaks

NAMES = ("plain", "guidance", "stop-string", "grammar", "chain", "early-end", "watermark")
N = 20_000


def shifted(family: Family, by: float, *extra: tuple[Outcome, int]) -> list[tuple[Outcome, int]]:
    """Expected counts of N draws when `by` of the mass moves to the first outcome; `extra` draws besides."""
    assert family.reference is not None
    free = N - sum(n for _, n in extra)
    counts = [[m.outcome, int(free * m.p * (1 - by))] for m in family.reference]
    counts[0][1] += free - sum(n for _, n in counts)  # type: ignore[misc]
    return [(o, n) for o, n in counts if n] + list(extra)  # type: ignore[misc]


def example(title: str = "Does a processor see the right prefix under prompt lookup?") -> ReportInput:
    """A study of seven configurations with every verdict, a lost unit, and predictions of each status."""
    families = {name: enumerated_family(4, 2, seed=i) for i, name in enumerate(NAMES)}
    rule = NothingAfter(pattern=(2,), context=())
    families["stop-string"] = keeping(families["stop-string"], rule)
    stop = Predicate(
        id="stops",
        statement="nothing follows a completed stop string",
        source="generation documentation, `stop_strings`",
        rule=rule,
    )
    predictions = [
        Prediction(
            id="control",
            statement="The plain control is not rejected.",
            claim=VerdictClaim(configuration="plain", in_=("NOT_REJECTED",)),
        ),
        Prediction(
            id="watermark",
            statement="The watermark fails too.",
            claim=VerdictClaim(configuration="watermark", in_=("FAILS",)),
        ),
        Prediction(
            id="many",
            statement="Most probes fail.",
            claim=CountClaim(configurations=NAMES[1:], verdict="FAILS", at_least=5),
        ),
    ]
    plan = study(families, draws=N, predicates=[stop], predictions=predictions, title=title, missing="bound")
    plan = _dressed(plan)
    long = tokens(2, 1, 1, finish=None)
    crash = Crashed(crash="AssertionError")
    arms: dict[str, tuple[list[tuple[Outcome, int]], list[tuple[Outcome, int]], int]] = {
        "plain": (shifted(families["plain"], 0), shifted(families["plain"], 0.001), 4711),
        "guidance": (shifted(families["guidance"], 0), shifted(families["guidance"], 0.1), 5120),
        "stop-string": (
            shifted(families["stop-string"], 0), shifted(families["stop-string"], 0, (long, 21)), 3900,
        ),
        "grammar": (shifted(families["grammar"], 0), shifted(families["grammar"], 0, (crash, 900)), 8000),
        "chain": (shifted(families["chain"], 0), shifted(families["chain"], 0), 0),
        "early-end": (shifted(families["early-end"], 0.08), shifted(families["early-end"], 0), 4000),
    }  # fmt: skip
    tallies: dict[str, Tally] = {}
    for name, (off, on, proposals) in arms.items():
        tallies[f"main.{name}.off"] = tally_of(f"main.{name}.off", off)
        tallies[f"main.{name}.on"] = tally_of(f"main.{name}.on", on, proposals=proposals)
    tallies["main.watermark.off"] = tally_of("main.watermark.off", shifted(families["watermark"], 0))
    decisions = decide(plan, SEAL, tallies, {"main.watermark.on"})
    return ReportInput(
        study=plan,
        seal=SEAL,
        manifest=Manifest(
            study="made-up",
            created="2026-11-29T09:00:00.000000+00:00",
            commit="c" * 40,
            author=Signer(principal="author@example.org", key="SHA256:" + "k" * 43),
            rules=1,
            environments={},
            files=(),
        ),
        entries=_entries(plan),
        state="audited",
        head="6" * 64,
        decisions=decisions,
        audit=_audit(decisions),
    )


def _dressed(plan: Study) -> Study:
    """The study with a vocabulary, and with the rule on stop strings where it belongs."""
    model = TinyModel(
        kind="tiny-llama", seed="1", initializer_range=0.1, vocab=("<end>", "a", "b", "c"), eos=0, hidden=16,
        intermediate=32, layers=1, heads=2, context=32,
    )  # fmt: skip
    configurations = tuple(
        replace(c, model="tiny", predicates=c.predicates if c.id == "stop-string" else ())
        for c in plan.protocol.configurations
    )
    protocol = replace(
        plan.protocol,
        models={"tiny": model},
        configurations=configurations,
        exclusions=("Prompts longer than the model's context.",),
    )
    return replace(plan, protocol=protocol)


def keeping(family: Family, rule: NothingAfter) -> Family:
    """The family with a law that keeps the rule."""
    assert family.reference is not None
    kept = [m for m in family.reference if not breaks(m.outcome, rule)]
    total = sum(m.p for m in kept)
    return replace(family, reference=tuple(replace(m, p=m.p / total) for m in kept))


def _entries(plan: Study) -> tuple[Entry, ...]:
    author, reviewer = "author@example.org", "reviewer@example.org"
    lines: list[tuple[EntryType, str, dict[str, Any]]] = [
        ("sealed", author, {"seal": SEAL, "signature_sha256": SEAL, "commit": "c" * 40}),
        (
            "collection-started",
            author,
            {
                "seal": SEAL, "attempt": 1, "environments": {}, "workers": 2, "network": "not-cut",
                "network_reason": "unshare: operation not permitted",
            },
        ),
    ]  # fmt: skip
    for unit in plan.protocol.units():
        if unit.id == "main.watermark.on":
            reason = "a worker exceeded request_seconds"
            lines.append(("unit-invalid", author, {"unit": unit.id, "attempt": 1, "reason": reason}))
            continue
        body = {
            "unit": unit.id, "shard": 0, "attempt": 1, "records_sha256": SEAL, "records_size": 9,
            "meta_sha256": SEAL, "draws": N,
        }  # fmt: skip
        lines.append(("shard-stored", author, body))
    lines += [
        (
            "collection-ended",
            author,
            {"seal": SEAL, "complete": True, "stored": 13, "invalid": ["main.watermark.on"]},
        ),
        ("analysis", author, {"seal": SEAL, "decisions_sha256": SEAL}),
        (
            "audit",
            reviewer,
            {"seal": SEAL, "report_sha256": SEAL, "signature_sha256": SEAL, "result": "AGREES"},
        ),
    ]
    return tuple(
        Entry(
            seq=i,
            time=f"2026-11-29T{9 + i // 60:02d}:{i % 60:02d}:00.000000+00:00",
            type=kind,
            actor=actor,
            body=body,
            body_sha256=SEAL,
            prev=SEAL,
        )
        for i, (kind, actor, body) in enumerate(lines, 1)
    )


def _audit(decisions: Any) -> dict[str, Any]:
    names = (
        "folder", "manifest", "files", "signature", "study files", "ledger", "records", "decisions", "order",
        "seeds", "decisions re-derived", "predictions re-derived", "comparison with decisions.json",
    )  # fmt: skip
    return {
        "result": "AGREES",
        "audited_at": "2026-11-29T12:00:00.000000+00:00",
        "history": "checked",
        "auditor": {"rules": 1, "code_sha256": SEAL, "python": "3.11.2"},
        "steps": [
            {"number": i, "name": name, "status": "ok", "applied": i * 3, "detail": ""}
            for i, name in enumerate(names, 1)
        ],
        "configurations": [
            {"id": d.id, "verdict": d.verdict, "claimed": d.verdict, "agrees": True, "differences": []}
            for d in decisions.configurations
        ],
        "predictions": [
            {"id": p.id, "status": p.status, "claimed": p.status, "agrees": True}
            for p in decisions.predictions
        ],
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(render(example()), encoding="utf-8")
    print(folder / "index.html")
