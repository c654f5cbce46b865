"""Records that some commit holds before the seal were seen before it."""

from pathlib import Path
from types import ModuleType

CAUGHT_BY = ("verify", "auditor")
NAMED = "records/"


def apply(study: Path, tools: ModuleType) -> None:
    seal = tools.git(study, "log", "--format=%H", "--diff-filter=A", "--", "seal/manifest.json")
    end = tools.git(study, "rev-parse", "HEAD")
    tools.git(study, "checkout", "-q", "-b", "side", f"{seal}~1")
    (study / "records").mkdir(parents=True)
    (study / "records/early.txt").write_text("seen\n")
    tools.git(study, "add", "records/early.txt")
    tools.git(study, "commit", "-q", "-m", "A first look")
    tools.git(study, "rm", "-q", "records/early.txt")
    tools.git(study, "commit", "-q", "-m", "Never mind")
    tools.git(study, "checkout", "-q", "-f", "-B", "main", end)
    tools.git(study, "merge", "-q", "-s", "ours", "-m", "Merge", "side")
