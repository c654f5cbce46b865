"""Step 7: every shard against its meta, the ledger and the plan; what is left is authenticated.

A record's line is fixed by the plan but for its counters, its outcome and what was told beside it, so a line
is first compared with the bytes it must have around those. A line that differs is taken apart slowly, to say
what is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from audits.attempts import CEILINGS, Key, stem_of
from audits.channel_r import RecordReader, Reference, record_wrong
from audits.duplicates import Pair, Stored, check_copies, counted, grouped, kept, marks, pair_of, told
from audits.fault import Fault, Found
from audits.jsonc import JsonFault, canonical, parse, parse_machine
from audits.leaves import LeafReader, Tree
from audits.ledger import Ledger
from audits.load import Folder
from audits.schema import Schema
from audits.shards import check_shard
from audits.study import Study, Unit

_FILE = re.compile(
    r"records/([^/]+?)(?:\.attempt-([2-9]))?/([0-9]{5})\.(?:jsonl\.gz|meta\.json|(duplicate-[0-9]+\.jsonl\.gz))"
)
_ZERO = b'{"accepted":0,"proposals":0,"verifications":0}'


@dataclass(slots=True)
class Tally:
    """What the decision needs of a unit's authenticated records."""

    outcomes: Counter[bytes] = field(default_factory=Counter)
    """Draws by the canonical bytes of their outcome."""
    proposals: int = 0
    verifications: int = 0
    accepted: int = 0
    exposed: int = 0
    """Draws with a verification step that had something to verify."""
    mismatches: Counter[tuple[int, ...]] = field(default_factory=Counter)
    """Draws by the positions (from 1) at which their record mismatches the reference; empty without one."""
    seeds: list[tuple[int, int]] = field(default_factory=list)
    """Half-open intervals of the seeds used, one a shard."""

    @property
    def draws(self) -> int:
        """All draws, crashes too."""
        return self.outcomes.total()


@dataclass(slots=True)
class Records:
    """What step 7 leaves."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    """By unit: its authenticated shards."""
    trees: dict[str, Tree] = field(default_factory=dict)
    """By unit of an exact stage: its authenticated tree; its seeds are in its tally."""
    lost: dict[str, str] = field(default_factory=dict)
    """Units that are INVALID, or missing and bounded; the reason."""
    stopped: set[str] = field(default_factory=set)
    """Units that are over by a ceiling; none before edition 3."""
    attempts: dict[str, int] = field(default_factory=dict)
    """By unit of a study of edition 3: the attempt that counts."""
    duplicates: dict[str, dict[str, int]] = field(default_factory=dict)
    """By unit of a study of edition 3: how many second results there are, and how much of them differs.

    Of a unit that is not authenticated, those that could be read.
    """
    bad: set[str] = field(default_factory=set)
    """Units with anything that could not be authenticated: nothing may be derived from them."""


class LineReader:
    """Reads the records of shards, line by line."""

    def __init__(self, schema: Schema, seal: str) -> None:
        """``seal`` is the seal digest every record must carry."""
        self._schema = schema
        self._seal = seal
        self.part = lru_cache(maxsize=1 << 16)(self._parse_part)
        """Counters, outcome or record from their bytes; None if they are not canonical and of the schema."""

    def _parse_part(self, kind: str, data: bytes) -> Any:
        try:
            value = parse(data)
            whole = {"attempt": 1, "draw": 0, "row": 0, "seal": self._seal, "seed": "0", "shard": 0}
            whole |= {"unit": "a.b.c", "counters": parse(_ZERO), "outcome": {"crash": "x"}, kind: value}
            good = canonical(value) == data and self._schema.first_wrong(whole) is None
        except JsonFault:
            return None
        return value if good else None

    def shard(
        self,
        unit: Unit,
        shard: int,
        lines: bytes,
        file: str,
        tally: Tally,
        beside: RecordReader | None = None,
        attempt: int = 1,
    ) -> None:
        """Add a shard's records to a tally; raises at the first line that is not as planned.

        ``beside`` reads what was told beside the outcomes; None where the configuration has no records.
        """
        first, end = unit.span(shard)
        if not lines.endswith(b"\n"):
            raise Fault("its last line is cut short", file=file)
        split = lines[:-1].split(b"\n")
        if len(split) != (end - first) * unit.rows:
            raise Fault(f"has {len(split)} records, not {(end - first) * unit.rows}", file=file)
        head = b'{"attempt":%d,' % attempt
        tail = f',"shard":{shard},"unit":"{unit.id}"}}'
        at = 0
        for request in range(first, end):
            for row in range(unit.rows):
                draw, seed, line = request * unit.rows + row, unit.first + request, split[at]
                at += 1
                middle = f',"draw":{draw},"outcome":'.encode()
                after = f',"row":{row},"seal":"{self._seal}","seed":"{seed}"{tail}'.encode()
                counters, found, rest = line.removeprefix(head + b'"counters":').partition(middle)
                outcome = rest.removesuffix(after)
                good = found and len(outcome) + len(after) == len(rest) and line.startswith(head)
                sums = self.part("counters", counters) if good else None
                wrong: tuple[int, ...] | None = ()
                if beside is not None and sums is not None:
                    # No text in canonical JSON holds these bytes: its quotation marks are escaped.
                    outcome, _, record = outcome.partition(b',"record":')
                    if self.part("outcome", outcome) is not None:
                        wrong = beside.mismatches(outcome, record)
                if sums is None or wrong is None or self.part("outcome", outcome) is None:
                    place = f"{file} line {at}"
                    raise self.explain(line, unit, shard, request, row, place, beside is not None, attempt)
                if not unit.drafter and counters != _ZERO:
                    what = "counters are not 0 where nothing proposes"
                    raise Fault(what, file=f"{file} line {at}", pointer="/counters")
                for key in ("verifications", "accepted"):
                    if sums[key] > sums["proposals"]:
                        what = f"is {sums[key]}, more than the {sums['proposals']} proposals"
                        raise Fault(what, file=f"{file} line {at}", pointer=f"/counters/{key}")
                tally.outcomes[outcome] += 1
                tally.proposals += sums["proposals"]
                tally.verifications += sums["verifications"]
                tally.accepted += sums["accepted"]
                tally.exposed += sums["verifications"] > 0
                if wrong:
                    tally.mismatches[wrong] += 1
        tally.seeds.append((unit.first + first, unit.first + end))

    def explain(
        self,
        line: bytes,
        unit: Unit,
        shard: int,
        request: int,
        row: int,
        place: str,
        recorded: bool = False,
        attempt: int = 1,
    ) -> Fault:
        """What is wrong with a line, taken apart field by field; ``recorded`` if it should have a record."""
        try:
            record = parse_machine(line + b"\n")
            self._schema.check(record, place)
        except Fault as fault:
            return fault.at(place)
        planned = {
            "seal": self._seal, "unit": unit.id, "shard": shard, "attempt": attempt, "row": row,
            "draw": request * unit.rows + row, "seed": str(unit.first + request),
        }  # fmt: skip
        for key, value in planned.items():
            if record[key] != value:
                what = f"is {canonical(record[key]).decode()}, planned as {canonical(value).decode()}"
                return Fault(what, file=place, pointer=f"/{key}")
        if not recorded and "record" in record:
            return Fault("is there, and the configuration has no records", file=place, pointer="/record")
        if recorded and (wrong := record_wrong(record.get("record"), record["outcome"])):
            return Fault(wrong[1], file=place, pointer=wrong[0])
        return Fault("is not as planned", file=place)


class _Reading:
    """The readers of a study's records, and what they were read into."""

    def __init__(self, study: Study, schemas: dict[str, Schema], seal: str) -> None:
        self.records = Records()
        self._lines = LineReader(schemas["record"], seal)
        exact = bool(study.stages("exact"))
        self._leaves = LeafReader(schemas["leaf"], seal, self._lines.part) if exact else None
        self._beside = {
            c["id"]: RecordReader(
                Reference.of(c["records"], study.events[c["id"]].get("records")), self._lines.part
            )
            for c in study.configurations
            if "records" in c
        }
        self._earlier: dict[str, Tally] = {}
        """By unit: what attempts before the present one drew, which counts for nothing but its seeds."""
        self.read = 0
        """Leaves and second results, which no tally counts."""

    def result(self, unit: Unit, key: Key, meta: dict[str, Any], lines: bytes, present: bool) -> None:
        """Authenticate what the lines of a shard say, and keep what counts of it."""
        tallies = self.records.tallies if present else self._earlier
        tally, files = tallies.setdefault(unit.id, Tally()), f"{stem_of(key)}.jsonl.gz"
        if self._leaves is None or not unit.exact:
            self._draws(unit, key, lines, files, tally)
            return
        pair = files, f"{stem_of(key)}.meta.json"
        tree = self._leaves.tree(unit, lines, meta, pair, key[1])
        if present:
            self.records.trees[unit.id] = tree
        self.read += len(tree.leaves)
        tally.seeds.append((unit.first, unit.first + unit.requests))

    def _draws(self, unit: Unit, key: Key, lines: bytes, file: str, tally: Tally) -> None:
        told_beside = self._beside.get(unit.configuration)
        self._lines.shard(unit, key[2], lines, file, tally, told_beside, key[1])

    def whole(self, unit: Unit, key: Key, lines: bytes, file: str) -> None:
        """Authenticate what the lines of a second result say; nothing of it counts."""
        if self._leaves is None or not unit.exact:
            self._draws(unit, key, lines, file, Tally())
        elif not sum(1 for _ in self._leaves.leaves(unit, lines, file, key[1])):
            raise Fault("has no leaf", file=file)

    def finish(self) -> int:
        """How many draws, leaves and second results were read; seeds of every attempt are used, once."""
        tallies = [*self.records.tallies.values(), *self._earlier.values()]
        for name, tally in self._earlier.items():
            own = self.records.tallies.setdefault(name, Tally())
            own.seeds += sorted({*tally.seeds} - {*own.seeds})
        return self.read + sum(tally.draws for tally in tallies)


def check_records(
    folder: Folder, study: Study, ledger: Ledger, schemas: dict[str, Schema], seal: str, found: Found
) -> Records:
    """Authenticate every shard of every attempt, and account for every unit of the plan."""
    reading = _Reading(study, schemas, seal)
    records, attempts = reading.records, ledger.attempts
    context = (study.id, seal, ledger.sealed_at)

    def bad(unit: str, fault: Fault) -> None:
        found.faults.append(fault)
        records.bad.add(unit)

    pairs: list[Pair] = []
    earlier: dict[Key, list[bytes]] = {}
    differ = kept(ledger)
    for path in folder.files("records/"):
        match = _FILE.fullmatch(path)
        if match is None:
            continue
        if match[4] is not None and path not in differ:
            bad(match[1], Fault("the ledger has no `duplicate` that differs for it", file=path))
        if match[4] is None and (match[1], int(match[2] or 1), int(match[3])) not in ledger.stored:
            bad(match[1], Fault("the ledger stored no such shard", file=path))
    for key in chain.from_iterable(grouped(ledger.stored)):
        name, _, shard = key
        body, counts = ledger.stored[key], (name, attempts.present(name), shard)
        earlier = {old: lines_of for old, lines_of in earlier.items() if (old[0], old[2]) == (name, shard)}
        unit = study.units.get(name)
        if unit is None or shard >= unit.shards:
            bad(name, Fault("stored, but not in the plan", file=stem_of(key)))
            continue
        try:
            networks = ledger.networks[key]
            meta, lines = check_shard(folder, unit, key, body, networks, schemas["shard-meta"], context)
            reading.result(unit, key, meta, lines, key == counts)
            stored = Stored(key=key, body=body, meta=meta, lines=lines)
            reading.read += check_copies(folder, ledger, stored, partial(reading.whole, unit, key))
            if key == counts:
                pairs += [pair_of(*old, key, marks(key, lines)) for old in earlier.items()]
            elif counts in ledger.stored:
                earlier[key] = marks(key, lines)
        except Fault as fault:
            bad(name, fault)
    for name in sorted({*ledger.invalid, *attempts.failed} - {*study.units}):
        bad(name, Fault(f"{name} is INVALID, but not in the plan", file="ledger.jsonl"))
    found.applied += reading.finish()
    _account(study, ledger, records, found)
    if study.edition >= 3:
        records.attempts = {name: attempts.present(name) for name in study.units}
        records.duplicates = {name: counted(ledger, name, pairs) for name in study.units}
        records.stopped = {name for name, cause in attempts.over.items() if cause in CEILINGS}
        if differing := told(ledger, pairs):
            found.notes.insert(0, "duplicates that differ: " + " | ".join(differing))
    return records


def _account(study: Study, ledger: Ledger, records: Records, found: Found) -> None:
    """Every planned unit is whole, INVALID, or missing where the protocol bounds that."""
    bounded = study.protocol["missing"] == "bound" and not ledger.complete
    stored: dict[str, set[int]] = {}
    for name, attempt, shard in ledger.stored:
        if attempt == ledger.attempts.present(name):
            stored.setdefault(name, set()).add(shard)
    for name, unit in study.units.items():
        have = stored.get(name, set())
        if name in ledger.invalid:
            records.lost[name] = f"INVALID: {ledger.invalid[name]}"
            found.applied += 1  # where every unit is lost, that is what there is to look at
        elif len(have) < unit.shards:
            gap = min(set(range(unit.shards)) - have)
            if bounded:
                records.lost[name] = f"missing from shard {gap:05d} on"
            elif ledger.complete:
                what = f"the collection is complete without shard {gap:05d} of {name}"
                found.fault(what, file="ledger.jsonl")
                records.bad.add(name)
            else:
                records.bad.add(name)
    if records.lost:
        found.notes += [f"{name} {why}" for name, why in records.lost.items()]
