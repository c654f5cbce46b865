"""`prereg seeds`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, console, emit, number, say, table
from prereg.errors import UsageError, VerificationFailed, WrongState

if TYPE_CHECKING:
    from prereg.store.seed_map import StudySeeds

seeds_app = typer.Typer(help="Seed blocks across every study.", no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(seeds_app, name="seeds")

Studies = Annotated[Path, typer.Argument(metavar="STUDIES", help="The folder that holds the studies.")]


@seeds_app.command("check", epilog="Example: prereg seeds check studies --json")
def check_seeds(studies: Studies = Path("studies"), as_json: AsJson = False) -> None:
    """Compare reserved and used seeds of all studies, at full width and in their low 32 bits."""
    from prereg.codec.convert import to_json
    from prereg.store.seeds import not_understood, seeds_check, studies_in

    _refuse_place(studies, "check")
    names = [p.name for p in studies_in(studies.absolute())]
    found = seeds_check(studies.absolute())
    unread = not_understood(studies.absolute())
    if as_json:
        emit({"studies": names, "overlaps": to_json(found), "not_understood": unread})
    elif found:
        table(
            "Overlapping seeds",
            ("study", "block", "study", "block", "first", "end", "bits"),
            [(o.study_a, o.block_a, o.study_b, o.block_b, o.first, o.end, o.width) for o in found],
        )
    if unread and not as_json:
        say(f"Drafts whose seeds.json is not understood, so reserving nothing: {', '.join(unread)}.")
    if found:
        raise VerificationFailed(str(found[0]), where=str(studies), next_step="give one of them other seeds")
    if not as_json:
        say(f"No seed is reserved or used twice among {len(names)} studies ({', '.join(names) or 'none'}).")
        say("Disjoint seeds are not independent streams; they only are not the same ones.")


def _refuse_place(studies: Path, verb: str) -> None:
    """Raise UsageError unless it is a folder of studies: in one study there is no other to compare."""
    step = f"prereg seeds {verb} STUDIES"
    if not studies.is_dir():
        raise UsageError("there is no such folder", where=str(studies), next_step=step)
    if any((studies / name).exists() for name in ("protocol.json", "seeds.json", "ledger.jsonl")):
        step = f"prereg seeds {verb} {studies.absolute().parent}"
        raise UsageError(
            "it is a study, and not the folder of all studies", where=str(studies), next_step=step
        )


@seeds_app.command("show", epilog="Example: prereg seeds show studies --png seeds.png")
def show_seeds(
    studies: Studies = Path("studies"),
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the blocks into this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what each study reserves and used, at full width and in the low 32 bits."""
    from prereg.cli.seed_picture import bars, draw
    from prereg.store.seed_map import seed_map

    _refuse_place(studies, "show")
    found = seed_map(studies.absolute())
    if png is not None:
        draw(found, png)
    if as_json:
        emit({"studies": [_shown(study) for study in found], "png": None if png is None else str(png)})
        return
    table(
        "Seed blocks",
        ("study", "block", "role", "unit", "first", "end", "seeds", "used", "low 32 bits"),
        [
            (
                study.study,
                block.id,
                block.role,
                block.unit,
                block.first,
                block.end,
                number(block.end - block.first),
                number(block.used),
                _low(block.first, block.end),
            )
            for study in found
            for block in study.blocks
        ],
    )
    width = max(20, console().width - max((len(s.study) for s in found), default=0) - 14)
    for bits, title in ((64, "At full width"), (32, "In the low 32 bits")):
        say(f"{title} (▒ reserved, █ used, ┊ a gap left out):")
        for line in bars(found, bits=bits, width=min(width, 96)):
            say(f"  {line}")
    for study in found:
        if not study.understood:
            say(f"The draft {study.study} has a seeds.json that is not understood: it reserves nothing.")
    if png is not None:
        say(f"Drawn: {png}")


def _low(first: int, end: int) -> str:
    """The low 32 bits of a block, for people."""
    from prereg.store.seed_map import low

    pieces = low([(first, end)])
    return "the same" if pieces == [(first, end)] else ", ".join(f"{a} to {b}" for a, b in pieces)


def _shown(study: StudySeeds) -> dict[str, Any]:
    """One study as JSON; a seed is a decimal string, as everywhere."""
    from prereg.store.seed_map import low

    def texts(intervals: Sequence[tuple[int, int]]) -> list[list[str]]:
        return [[str(first), str(end)] for first, end in intervals]

    return {
        "study": study.study,
        "draft": study.draft,
        "understood": study.understood,
        "blocks": [
            {
                "id": b.id,
                "role": b.role,
                "unit": b.unit,
                "first": str(b.first),
                "end": str(b.end),
                "low": texts(low([(b.first, b.end)])),
                "used": b.used,
            }
            for b in study.blocks
        ],
        "used": {"full": texts(study.used), "low": texts(low(study.used))},
    }


@seeds_app.command("plan", epilog="Example: prereg seeds plan studies/mine")
def plan_seeds(folder: StudyDir, as_json: AsJson = False) -> None:
    """Write seeds.json anew for the protocol as it stands, above every seed of the repository."""
    import json

    from prereg.codec.convert import read_authored
    from prereg.draft.scaffold import first_free
    from prereg.draft.scaffold import plan_seeds as plan
    from prereg.model.places import state
    from prereg.model.study import Protocol
    from prereg.store.files import read_once, write_whole
    from prereg.store.layout import study_paths
    from prereg.store.ledger import read_ledger
    from prereg.store.seeds import repository_spans

    paths = study_paths(folder)
    protocol = read_authored(read_once(paths.protocol), "protocol", Protocol, where="protocol.json")
    entries = read_ledger(read_once(paths.ledger)) if paths.ledger.exists() else ()
    if entries and (state(entries) != "sealed" or not protocol.since(2)):
        what = "the study is sealed: its seeds stay"
        raise WrongState(what, where=str(folder), next_step=f"prereg status {folder}")
    value = plan(protocol, first_free(repository_spans(paths.studies, without=paths.name)))
    write_whole(paths.root / "seeds.json", (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
    blocks = value["blocks"]
    if as_json:
        emit({"study": paths.name, "blocks": blocks})
        return
    say(f"Wrote {len(blocks)} blocks, seeds {blocks[0]['first']} to {blocks[-1]['end']}.")
    if entries:
        say(f"Next: prereg amend {folder}, since the seal names other seeds.")
