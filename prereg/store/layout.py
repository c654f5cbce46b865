"""Where everything of a study lies (docs/formats.md section 2)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from prereg.errors import PreregError, UsageError, WrongState
from prereg.model.attempts import unit_folder

UNSEALED_FOLDERS = ("seal", "records", "stamps", "analysis", "audit", "report")
"""Folders of a study that the manifest does not list."""
UNSEALED_FILES = ("ledger.jsonl", "ledger.head.json", "ledger.head.json.sig")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPaths:
    """The paths of one study; `root` is its folder, absolute."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def protocol(self) -> Path:
        return self.root / "protocol.json"

    @property
    def events(self) -> Path:
        return self.root / "events.json"

    @property
    def seal(self) -> Path:
        return self.root / "seal"

    @property
    def manifest(self) -> Path:
        return self.seal / "manifest.json"

    @property
    def manifest_signature(self) -> Path:
        return self.seal / "manifest.json.sig"

    @property
    def sums(self) -> Path:
        return self.seal / "SHA256SUMS"

    @property
    def cosign(self) -> Path:
        """The signatures of the seal besides its author's."""
        return self.seal / "cosign"

    def cosignature(self, principal: str) -> Path:
        return self.cosign / f"{principal}.sig"

    @property
    def timestamp_request(self) -> Path:
        return self.seal / "timestamp.tsq"

    @property
    def timestamp_response(self) -> Path:
        return self.seal / "timestamp.tsr"

    @property
    def lineage(self) -> Path:
        """The seals that were amended, each in a folder named by its digest."""
        return self.seal / "lineage"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def head(self) -> Path:
        return self.root / "ledger.head.json"

    @property
    def head_signature(self) -> Path:
        return self.root / "ledger.head.json.sig"

    @property
    def code(self) -> Path:
        return self.root / "code"

    @property
    def records(self) -> Path:
        return self.root / "records"

    def shard_records(self, unit: str, shard: int, attempt: int = 1) -> Path:
        return self.records / unit_folder(unit, attempt) / f"{shard:05d}.jsonl.gz"

    def shard_meta(self, unit: str, shard: int, attempt: int = 1) -> Path:
        return self.records / unit_folder(unit, attempt) / f"{shard:05d}.meta.json"

    def duplicate(self, unit: str, shard: int, attempt: int, k: int) -> Path:
        """The k-th second result of a shard, counted from 1, where it was not the same (section 21)."""
        return self.records / unit_folder(unit, attempt) / f"{shard:05d}.duplicate-{k}.jsonl.gz"

    @property
    def stamps(self) -> Path:
        """The time stamps of the ledger's heads (section 22)."""
        return self.root / "stamps"

    def head_stamp(self, seq: int) -> Path:
        """The folder of the stamp of the head that names that entry."""
        return self.stamps / str(seq)

    @property
    def decisions(self) -> Path:
        return self.root / "analysis" / "decisions.json"

    @property
    def audit_report(self) -> Path:
        return self.root / "audit" / "report.json"

    @property
    def audit_signature(self) -> Path:
        return self.root / "audit" / "report.json.sig"

    @property
    def report(self) -> Path:
        return self.root / "report"

    @property
    def studies(self) -> Path:
        """The folder that holds this study and its siblings."""
        return self.root.parent

    @property
    def repository(self) -> Path:
        """The folder above studies/, where trust/ lies."""
        return self.root.parent.parent

    @property
    def is_begun(self) -> bool:
        """Whether anything is there that only a seal makes, or what comes after one; a link counts."""
        return any(os.path.lexists(p) for p in (self.seal, self.ledger, self.head, self.records))

    @property
    def allowed_signers(self) -> Path:
        return self.repository / "trust" / "allowed_signers"

    @property
    def roles(self) -> Path:
        return self.repository / "trust" / "roles.json"


def not_sealed(paths: StudyPaths) -> WrongState:
    """What a verb says that needs a seal and finds none."""
    return WrongState("the study is not sealed", where=str(paths.root), next_step=f"prereg seal {paths.root}")


def study_paths(folder: Path) -> StudyPaths:
    """The paths of the study at `folder`. Raises UsageError if there is no such study."""
    # A link to a study leads to its own repository: its trust, its history and its neighbours are there.
    root = folder.resolve()
    if root.exists() and not root.is_dir():
        step = f"name the study's folder, such as {folder.parent}"
        raise UsageError("is a file, and no folder of a study", where=str(folder), next_step=step)
    if not root.is_dir():
        raise UsageError("there is no such folder", where=str(folder), next_step=f"prereg draft {folder}")
    if not (root / "protocol.json").exists() and not (root / "ledger.jsonl").exists():
        raise UsageError(
            "the folder holds no study (no protocol.json)", where=str(folder), next_step="prereg draft DIR"
        )
    return StudyPaths(root=root)


def distribution_root() -> Path:
    """The folder that holds prereg/, harness/ and audits/: a checkout, or site-packages."""
    return Path(__file__).resolve().parent.parent.parent


def harness_root() -> Path:
    """The folder `harness/` of this installation."""
    folder = distribution_root() / "harness"
    if not (folder / "worker.py").is_file():
        raise PreregError("this installation of prereg has no harness", where=str(folder))
    return folder


def auditor_root() -> Path:
    """The folder `audits/` of this installation."""
    folder = distribution_root() / "audits"
    if not (folder / "__main__.py").is_file():
        raise PreregError("this installation of prereg has no auditor", where=str(folder))
    return folder
