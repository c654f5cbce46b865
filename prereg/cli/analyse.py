"""`prereg analyse`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, number, say, table, witness_draws

if TYPE_CHECKING:
    from prereg.model.verdict import Decision


@app.command(epilog="Example: prereg analyse studies/mine --key ~/keys/ada")
def analyse(folder: StudyDir, key: KeyFile, principal: Principal = None, as_json: AsJson = False) -> None:
    """Apply the sealed rules to the authenticated records."""
    from prereg.analyse.run import analyse_study
    from prereg.cli.signing import actor
    from prereg.codec.convert import to_json
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    decisions = analyse_study(paths, key=who.key, principal=who.principal)
    if as_json:
        emit(to_json(decisions))
        return
    decoding = any(d.rule == "channel-S" for d in decisions.configurations)
    columns = ("witnesses", "proposed") if decoding else ()

    def cells(d: Decision) -> tuple[str, ...]:
        draws = number(witness_draws((w.outcome, w.count) for w in d.witnesses))
        return (draws, number(d.proposals)) if decoding else ()

    table(
        "Decisions",
        ("configuration", "verdict", "because", *columns, "gap D", "on event", "crashed off / on"),
        [
            (
                d.id,
                d.verdict,
                ", ".join(d.reasons),
                *cells(d),
                number(d.D),
                None if d.D_event is None else ("not " if d.D_complement else "") + d.D_event,
                f"{number(d.crashes.off)} / {number(d.crashes.on)}",
            )
            for d in decisions.configurations
        ],
    )
    for d in decisions.configurations:
        for arm, crashed, draws in (("off", d.crashes.off, d.draws.off), ("on", d.crashes.on, d.draws.on)):
            if crashed and draws and 2 * crashed > draws:
                say(f"Most draws of {d.id} ({arm}) crashed: its verdict says nothing about anything else.")
    if decisions.predictions:
        table("Predictions", ("prediction", "status"), [(p.id, p.status) for p in decisions.predictions])
    say(f"Wrote {paths.decisions}. Next, by somebody else: prereg audit {folder} --key THEIR_KEY")
