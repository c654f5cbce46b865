"""`prereg analyse`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say


@app.command(epilog="Example: prereg analyse studies/mine --key ~/keys/ada")
def analyse(folder: StudyDir, key: KeyFile, principal: Principal = None, as_json: AsJson = False) -> None:
    """Apply the sealed rules to the authenticated records."""
    from prereg.analyse.run import analyse_study
    from prereg.cli.decisions import arms_of, show_decisions
    from prereg.cli.deviate import show_deviations
    from prereg.cli.signing import actor
    from prereg.cli.stamp_hint import hint_stamp
    from prereg.codec.convert import read_authored, to_json
    from prereg.model.study import Protocol
    from prereg.store.files import read_in, read_once
    from prereg.store.layout import study_paths
    from prereg.store.ledger import read_ledger

    paths = study_paths(folder)
    who = actor(paths, key, principal)
    decisions = analyse_study(paths, key=who.key, principal=who.principal)
    if as_json:
        emit(to_json(decisions))
        return
    data = read_in(paths.root, "protocol.json")[0]
    protocol = read_authored(data, "protocol", Protocol, where="protocol.json")
    show_decisions(decisions, arms_of(protocol))
    show_deviations(read_ledger(read_once(paths.ledger)))
    hint_stamp(paths, folder)
    say(f"Wrote {paths.decisions}. Next, by somebody else: prereg audit {folder} --key THEIR_KEY")
