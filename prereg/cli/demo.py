"""`prereg demo`: the whole lifecycle, by the very commands that a user would type."""

from __future__ import annotations

import json
import os
import shlex
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, console, emit, number, say, table, witness_draws
from prereg.errors import EvidenceIncomplete

AUTHOR, REVIEWER = "author@example.org", "reviewer@example.org"


@app.command(epilog="Example: prereg demo   ·   prereg demo --folder /tmp/look --json")
def demo(
    folder: Annotated[
        Path | None, typer.Option(help="Where to make the demo; a new folder beside the checkout by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draft, seal, collect, analyse and audit a real study, start to end."""
    from prereg.store.layout import distribution_root, study_paths

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    root = distribution_root()
    beside = root.parent if (root / "pyproject.toml").is_file() else Path.cwd()
    place = (folder or beside / f"prereg-demo-{stamp}").absolute()
    repository, keys = place / "repository", place / "keys"
    study = repository / "studies" / "demo"
    _prepare(place, repository)
    author, reviewer = keys / "author", keys / "reviewer"
    begun = time.monotonic()
    for words, argv in (
        ("the engine's own environment, made once", ["build", "hf-5.17.0"]),
        ("the author's key", ["key", "new", str(author), "--principal", AUTHOR, "--role", "author"]),
        ("the reviewer's key", ["key", "new", str(reviewer), "--principal", REVIEWER, "--role", "reviewer"]),
        ("a study from a template, its blanks filled", ["draft", "studies/demo", *_blanks()]),
        ("the reference law of each configuration, by the oracle", ["events", "studies/demo"]),
        ("what can be known before any data", ["check", "studies/demo"]),
        ("the seal: from here on nothing may change", ["seal", "studies/demo", "--key", str(author)]),
        ("the sealed draws, and no others", ["collect", "studies/demo", "--key", str(author)]),
        ("the sealed rules, on authenticated records", ["analyse", "studies/demo", "--key", str(author)]),
        ("everything again, by code that shares none", ["audit", "studies/demo", "--key", str(reviewer)]),
        ("a page to read", ["report", "studies/demo"]),
    ):
        _step(words, argv, repository)
        if argv[0] == "draft":
            _commit(repository)
    seconds = time.monotonic() - begun
    summary = _summary(study_paths(study).root)
    if as_json:
        emit({**summary, "folder": str(place), "seconds": round(seconds, 1)})
    _show(summary, study, place, seconds)


def _blanks() -> list[str]:
    return [
        "--template",
        "conformance",
        "--title",
        "Prompt lookup in Transformers 5.17.0: five sampling configurations",
        "--question",
        "Does prompt-lookup decoding return the same distribution as plain sampling?",
        "--author",
        "Demo Author",
        "--principal",
        AUTHOR,
    ]


def _prepare(place: Path, repository: Path) -> None:
    from prereg.errors import WrongState
    from prereg.store.repo import Repo

    if place.exists():
        raise WrongState("the folder exists", where=str(place), next_step="prereg demo --folder NEW")
    repository.mkdir(parents=True)
    Repo.create(repository)
    say(f"A new git repository for the demo: {repository}")


def _commit(repository: Path) -> None:
    """The draft and the trust files go under version control, as a user would do it."""
    from prereg.store.repo import Repo

    console().print("$ git add trust studies && git commit -m 'Draft of the demo study'", style="bold")
    places = [repository / "trust", repository / "studies"]
    Repo.find(repository).commit(places, "Draft of the demo study", {}, principal=AUTHOR)


def _step(words: str, argv: list[str], repository: Path) -> None:
    out = console()
    out.rule(f"[bold]{words}", align="left")
    out.print(f"$ prereg {shlex.join(argv)}", style="bold", markup=False)
    before = Path.cwd()
    os.chdir(repository)
    try:
        code = app(argv, standalone_mode=False)
    finally:
        os.chdir(before)
    if code:
        raise EvidenceIncomplete(
            f"`prereg {argv[0]}` ended with exit code {code}",
            where=str(repository),
            next_step=f"cd {repository} && prereg {shlex.join(argv)}",
        )


def _summary(root: Path) -> dict[str, Any]:
    """What the demo found, from the files it left behind."""
    decisions = json.loads((root / "analysis" / "decisions.json").read_bytes())
    report = json.loads((root / "audit" / "report.json").read_bytes())
    protocol = json.loads((root / "protocol.json").read_bytes())
    return {
        "study": decisions["study"],
        "seal": decisions["seal"],
        "audit": report["result"],
        "page": str(root / "report" / "index.html"),
        "configurations": [
            {
                "id": d["id"],
                "role": c["role"],
                "about": c["about"],
                "verdict": d["verdict"],
                "witnesses": witness_draws((w["outcome"], w["count"]) for w in d["witnesses"]),
                "D": d["D"],
                "D_event": d["D_event"],
                "proposals": d["proposals"],
                "draws": d["draws"],
                "audit_agrees": a["agrees"],
            }
            for d, a, c in zip(
                decisions["configurations"], report["configurations"], protocol["configurations"], strict=True
            )
        ],
        "predictions": decisions["predictions"],
    }


def _show(summary: dict[str, Any], study: Path, place: Path, seconds: float) -> None:
    console().rule("[bold]what came out", align="left")
    table(
        "Speculation on against off, by draws",
        ("configuration", "role", "verdict", "witnesses", "gap D", "proposed", "audit"),
        [
            (
                c["id"],
                c["role"],
                c["verdict"],
                number(c["witnesses"]),
                number(c["D"]),
                number(c["proposals"]),
                "agrees" if c["audit_agrees"] else "DISAGREES",
            )
            for c in summary["configurations"]
        ],
    )
    say("FAILS: a documented contract was broken (witnesses), or the two laws differ by more than 0.01.")
    say("NOT_REJECTED: these draws showed no difference. That is not evidence that there is none.")
    say(f"The independent auditor: {summary['audit']}. All of it took {seconds:.0f} s.")
    say(f"The study:  {study}")
    say(f"The page:   {summary['page']}")
    say(f"To look around: cd {place / 'repository'} && git log --stat")
