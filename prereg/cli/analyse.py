"""`prereg analyse`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, number, say, table, witness_draws


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
    table(
        "Decisions",
        ("configuration", "verdict", "because", "witnesses", "gap D", "on event", "proposed"),
        [
            (
                d.id,
                d.verdict,
                ", ".join(d.reasons),
                number(witness_draws((w.outcome, w.count) for w in d.witnesses)),
                number(d.D),
                None if d.D_event is None else ("not " if d.D_complement else "") + d.D_event,
                number(d.proposals),
            )
            for d in decisions.configurations
        ],
    )
    if decisions.predictions:
        table("Predictions", ("prediction", "status"), [(p.id, p.status) for p in decisions.predictions])
    say(f"Wrote {paths.decisions}. Next, by somebody else: prereg audit {folder} --key THEIR_KEY")
