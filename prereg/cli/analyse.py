"""`prereg analyse`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say


@app.command(epilog="Example: prereg analyse studies/mine --key ~/keys/ada")
def analyse(folder: StudyDir, key: KeyFile, principal: Principal = None, as_json: AsJson = False) -> None:
    """Apply the sealed rules to the authenticated records."""
    from prereg.analyse.run import analyse_study
    from prereg.cli.decisions import show_decisions
    from prereg.cli.deviate import show_deviations
    from prereg.cli.signing import actor
    from prereg.codec.convert import to_json
    from prereg.store.files import read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import read_ledger

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    decisions = analyse_study(paths, key=who.key, principal=who.principal)
    if as_json:
        emit(to_json(decisions))
        return
    show_decisions(decisions)
    show_deviations(read_ledger(read_once(paths.ledger)))
    say(f"Wrote {paths.decisions}. Next, by somebody else: prereg audit {folder} --key THEIR_KEY")
