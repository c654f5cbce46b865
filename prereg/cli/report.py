"""`prereg report`."""

from __future__ import annotations

from prereg.cli.app import app
from prereg.cli.output import AsJson, StudyDir, emit, say


@app.command(epilog="Example: prereg report studies/mine")
def report(folder: StudyDir, as_json: AsJson = False) -> None:
    """Write a static page of the study: what was asked, found, and how to check it."""
    from prereg.report.html import write_report
    from prereg.store.layout import study_paths

    page = write_report(study_paths(folder))
    if as_json:
        emit({"study": folder.name, "page": str(page)})
        return
    say(f"Wrote {page}")
