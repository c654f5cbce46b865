"""`prereg seal`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, KeyFile, Principal, StudyDir, emit, say


@app.command(epilog="Example: prereg seal studies/mine --key ~/keys/ada")
def seal(folder: StudyDir, key: KeyFile, principal: Principal = None, as_json: AsJson = False) -> None:
    """Check the study, then bind, sign and commit every byte of it."""
    from prereg.cli.check import require_ok, require_rehearsed, run_check, run_rehearsal, show, show_rehearsal
    from prereg.cli.signing import actor
    from prereg.collect.environments import fingerprints
    from prereg.collect.image import images_for_seal
    from prereg.seal.build import seal_study
    from prereg.store.layout import study_paths

    paths = study_paths(folder)
    report = run_check(paths)
    if not report.ok and not as_json:
        show(report)
    require_ok(report, str(folder))
    assert report.study is not None
    who = actor(paths, key, principal)
    tried = run_rehearsal(paths, report)
    if not as_json:
        show_rehearsal(tried)
    require_rehearsed(tried, str(folder))
    say("Taking the fingerprint of each environment.")
    protocol = report.study.protocol
    builds = [c.build for c in protocol.configurations]
    images = None
    if protocol.runtime == "container":
        environments, images = images_for_seal(builds)
    else:
        environments = fingerprints(builds)
    made = seal_study(paths, key=who.key, principal=who.principal, environments=environments, images=images)
    if as_json:
        emit(
            {
                "study": paths.name,
                "seal": made.seal,
                "commit": made.commit,
                "tag": made.tag,
                "ledger_head": made.head,
                "files": len(made.manifest.files),
                "author": who.principal,
                "environments": environments,
                "images": None if images is None else {name: i.id for name, i in images.items()},
            }
        )
        return
    say(f"Sealed {folder}: {len(made.manifest.files)} files, signed by {who.principal}.")
    say(f"  seal    {made.seal}")
    say(f"  commit  {made.commit}")
    say(f"  tag     {made.tag}")
    say(f"Next: prereg collect {folder} --key {key}")
