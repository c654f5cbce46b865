"""Runs the numbered steps in order; each uses only what the steps before it authenticated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.attested import Attested
from audits.closing import check_auditors, check_decisions_file
from audits.containers import check_containers
from audits.derive import Derivation, compare_decisions, derive_decisions, derive_predictions
from audits.fault import Fault, Found, Unavailable, writable
from audits.given import real
from audits.heads import Signing
from audits.history import check_history
from audits.jsonc import parse
from audits.ledger import LEDGER, Ledger, check_head, parse_ledger
from audits.lineage import Seal, compare_lineage, load_lineage
from audits.load import SMALL, Folder
from audits.plan import load_study
from audits.records import Records, check_records
from audits.repo import NoHistory
from audits.report import Outcome
from audits.revocation import check_kept, read_revocations
from audits.rules import load_schemas
from audits.schema import Schema
from audits.seal import MANIFEST, check_files, check_folder, check_manifest
from audits.seeds import check_seeds, find_others
from audits.shards import check_folders
from audits.signing import PROTOCOL, Sealing, Signed, check_signatures, sealed_protocol
from audits.stamps import check_stamps
from audits.states import Walk, check_order
from audits.study import Study
from audits.trust import Trust, load_trust

_EVIDENCE = ("seal/", "ledger.", "records/", "stamps/", "analysis/", "audit/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the reviewer asked for."""

    study: Path
    signers: Path
    roles: Path
    studies: Path
    revocations: Path | None = None
    """The revocations to trust; None for those of the repository and those beside ``signers``."""
    named: bool = False
    """Whether the reviewer named ``signers`` or ``roles``; else they are those of the repository."""
    without_history: bool = False


class Audit:
    """One audit, from the folder to the outcome."""

    def __init__(self, options: Options, folder: Folder) -> None:
        """``folder`` is the study's, open."""
        self._options = options
        self._folder = folder
        self._schemas: dict[str, Schema] = {}
        self._schemas_from = ""
        self._manifest: dict[str, Any] | None = None
        self._seals: list[Seal] = []
        """The lineage, the present seal last."""
        self._told: list[dict[str, Any]] | None = None
        """The ledger's entries as parsed before step 6; None if they cannot be."""
        self._chain: Ledger | None = None
        """The ledger as parsed then; None if its lines do not hold together."""
        self._signed = Signed()
        self._attested = Attested()
        self._stamps = Found()
        """What was found at the stamps of heads, which step 6 says."""
        self._bad: set[str] = set()
        self._trust: Trust | None = None
        self._study: Study | None = None
        self._lines: Ledger | None = None
        """The ledger's lines as parsed, which later checks of step 6 may have found wrong."""
        self._ledger: Ledger | None = None
        self._records: Records | None = None
        self._decisions: dict[str, Any] | None = None
        self._derived = Derivation()
        self._predicted: dict[str, str] = {}
        self.outcome = Outcome(writable(real(options.study).name))
        if options.without_history:
            self.outcome.history = "waived"

    def run(self) -> Outcome:
        """Every step; a step that fails does not hide a later one that can still be evaluated."""
        self._folder.scan(skip=("report",))
        if not any(path.startswith(_EVIDENCE) for path in self._folder.entries):
            self.outcome.incomplete.append("a seal: the study is a draft; run `prereg seal` on it first")
        steps: list[Callable[[Found], None]] = [
            self._step_folder, self._step_manifest, self._step_files, self._step_signature, self._step_study,
            self._step_ledger, self._step_records, self._step_decisions_file, self._step_order,
            self._step_seeds, self._step_decisions, self._step_predictions, self._step_comparison,
        ]  # fmt: skip
        for number, step in enumerate(steps, 1):
            self._do(number, step)
        return self.outcome

    def _do(self, number: int, step: Callable[[Found], None]) -> None:
        found = Found()
        self.outcome.steps[number] = found
        try:
            if number > 1 and self.outcome.incomplete and not self._has("seal/", LEDGER):
                raise Unavailable("the study is a draft")
            step(found)
            if not found.applied and not found.faults and not found.waiting:
                raise Fault("there was nothing to check")
        except Unavailable as why:
            found.waiting = str(why)
        except Fault as fault:
            found.faults.append(fault)

    def _has(self, *prefixes: str) -> bool:
        return bool(any(path.startswith(prefixes) for path in self._folder.entries))

    def _ok(self, *numbers: int) -> bool:
        return all(self.outcome.status(number) == "ok" for number in numbers)

    def _need(self, *numbers: int) -> None:
        for number in numbers:
            if not self._ok(number):
                state = "failed" if self.outcome.status(number) == "failed" else "was not checked"
                raise Unavailable(f"needs step {number}, which {state}")

    def _step_folder(self, found: Found) -> None:
        listed: set[str] | None = None
        third = False
        if self._folder.has(MANIFEST):
            try:
                value = parse(self._folder.read(MANIFEST).data)
                listed = {str(item["path"]) for item in value["files"]}
                third = self._names_third(value)
            except (Fault, KeyError, TypeError):
                found.notes.append("the manifest cannot be read, so listed files are not known")
        check_folder(self._folder, listed, found, third)

    def _names_third(self, manifest: dict[str, Any]) -> bool:
        """Whether the protocol says edition 3; step 3 authenticates it, this looks at no more of it."""
        size = next((item["size"] for item in manifest["files"] if item["path"] == PROTOCOL), None)
        if not isinstance(size, int) or not self._folder.has(PROTOCOL):
            return False
        with suppress(Fault):
            value = self._folder.authored(PROTOCOL, 2 * size + SMALL)
            return isinstance(value, dict) and value.get("edition") == 3
        return False

    def _step_manifest(self, found: Found) -> None:
        self._schemas, self._schemas_from = load_schemas(self._folder)
        manifest = check_manifest(self._folder, self._schemas["manifest"], found)
        self.outcome.study = manifest["study"]
        self.outcome.seal = self._folder.read(MANIFEST).digest
        self._manifest = manifest
        self._seals = load_lineage(self._folder, manifest, self._schemas["manifest"], found)
        with suppress(Fault):  # what is wrong with the ledger is said in step 6
            data = self._folder.read(LEDGER).data
            wrong = Found()
            ledger = parse_ledger(data, self._schemas["ledger-entry"], wrong)
            self._told, self._chain = ledger.entries, None if wrong.faults else ledger
        compare_lineage(self._seals, self._told, found)

    def _step_files(self, found: Found) -> None:
        self._need(2)
        assert self._manifest is not None
        self._bad = check_files(self._folder, self._manifest, found)

    def _step_signature(self, found: Found) -> None:
        if self._manifest is None:
            raise Unavailable("needs the manifest (step 2)")
        signers, roles, given = self._options.signers, self._options.roles, self._options.revocations
        # Keys that the reviewer names elsewhere do not make those of the repository good again.
        repository = real(self._options.study).parent.parent
        check_kept(repository, found)
        own = repository / "trust"
        revoked, told = read_revocations(own, signers, given, self._options.named, self._schemas)
        found.notes += [told] if told else []
        self.outcome.warnings += [told] if told and self._options.named else []
        self._trust = load_trust(signers, roles, self._schemas["roles"], tuple(revoked), own)
        protocol = sealed_protocol(self._folder, self._schemas["protocol"], self._manifest, self._bad)
        signing = self._signing(self._chain)
        self._attested = check_stamps(self._folder, self._manifest, protocol, signing, self._stamps)
        sealing = Sealing(
            folder=self._folder,
            trust=self._trust,
            seals=self._seals,
            protocol=protocol,
            entries=self._told,
            attested=self._attested,
        )
        self._signed = check_signatures(sealing, found)

    def _step_study(self, found: Found) -> None:
        self._need(2, 4)
        assert self._manifest is not None
        study = load_study(self._folder, self._schemas, self._manifest, self._bad, found)
        found.notes.append(self._schemas_from)
        if not found.faults:
            self._study = study

    def _step_ledger(self, found: Found) -> None:
        if self._manifest is None or self._trust is None:
            raise Unavailable("needs the manifest (step 2) and the trusted keys (step 4)")
        ledger = parse_ledger(self._folder.read(LEDGER).data, self._schemas["ledger-entry"], found)
        self._lines = ledger
        self.outcome.ledger_head = ledger.head
        walk = Walk(
            folder=self._folder, ledger=ledger, seals=self._seals, trust=self._trust, study=self._study,
            times=self._signed.times,
        )  # fmt: skip
        check_order(walk, found)
        check_auditors(ledger, self._study, found)
        found.applied += self._stamps.applied
        found.faults += self._stamps.faults
        found.notes += self._stamps.notes
        study, schema = self._manifest["study"], self._schemas["head"]
        check_head(self._folder, ledger, study, schema, self._trust, self._attested, found)
        found.notes.append(f"state {ledger.state}")
        self._ledger = ledger
        if not self._over and not found.faults:
            then = "it stays so" if ledger.closed else "run `prereg collect`"
            self.outcome.incomplete.append(f"a complete collection: the study is {ledger.state}; {then}")

    @property
    def _over(self) -> bool:
        """Whether the state calls for decisions."""
        return self._ledger is not None and (self._ledger.complete or self._ledger.analysis is not None)

    def _step_records(self, found: Found) -> None:
        self._need(5, 6)
        assert self._study is not None and self._ledger is not None and self.outcome.seal is not None
        assert self._manifest is not None
        check_containers(self._study, self._manifest, self._ledger, found)
        check_folders(self._folder, self._study, found)
        self._records = check_records(
            self._folder, self._study, self._ledger, self._schemas, self.outcome.seal, found
        )
        if not self._over and not found.applied and not found.faults:
            raise Unavailable(f"the study is {self._ledger.state}")

    def _step_decisions_file(self, found: Found) -> None:
        self._need(6)
        assert self._ledger is not None and self._trust is not None and self.outcome.seal is not None
        identity = self.outcome.study, self.outcome.seal
        value = check_decisions_file(
            self._folder, self._ledger, self._schemas, self._trust, self._attested, identity, found
        )
        if value is None and self._over:
            self.outcome.incomplete.append("analysis/decisions.json: run `prereg analyse`")
        self._decisions = value if not found.faults else None

    def _step_order(self, found: Found) -> None:
        if self._options.without_history:
            raise Unavailable("waived by the reviewer (--without-history)")
        if self._manifest is None or not self._folder.has(LEDGER):
            raise Unavailable("needs the manifest (step 2) and the ledger")
        try:
            check_history(self._folder, self._seals, self._signing(self._lines), found)
        except NoHistory as why:
            then = "audit a full clone of the study's repository, or waive this check with --without-history"
            self.outcome.incomplete.append(f"git history ({why}): {then}")
            raise Unavailable(f"no git history: {why}") from None
        except Fault:
            self.outcome.history = "checked"
            raise
        self.outcome.history = "checked"

    def _signing(self, ledger: Ledger | None) -> Signing | None:
        if self._manifest is None or ledger is None or self._trust is None:
            return None
        study, schema = self._manifest["study"], self._schemas["head"]
        return Signing(ledger=ledger, study=study, schema=schema, trust=self._trust, attested=self._attested)

    def _step_seeds(self, found: Found) -> None:
        self._need(5)
        assert self._study is not None
        others = find_others(self._options.study, self._options.studies)
        check_seeds(self._study, self._records, others, found)

    def _step_decisions(self, found: Found) -> None:
        self._need(5, 6)
        if not self._over:
            raise Unavailable("the collection is not complete")
        if self._study is None or self._records is None:
            raise Unavailable("needs step 7")
        self._derived = derive_decisions(self._study, self._records, found)

    def _step_predictions(self, found: Found) -> None:
        if self._study is None or self._derived.nothing:
            raise Unavailable("needs step 11")
        self._predicted = derive_predictions(self._study, self._derived, found)

    def _step_comparison(self, found: Found) -> None:
        if self._study is None or self._derived.nothing:
            raise Unavailable("needs step 11")
        claimed = self._decisions
        compare_decisions(
            self._study, claimed, self.outcome.seal, self._derived, self._predicted, self.outcome, found
        )
        if claimed is None:
            raise Unavailable("there is no authenticated analysis/decisions.json (step 8)")
        if not found.faults:
            self._need(11, 12)


def audit(options: Options) -> Outcome:
    """Audit a study; never raises for anything that is wrong with the evidence."""
    folder = Folder(options.study)
    try:
        return Audit(options, folder).run()
    finally:
        folder.close()
