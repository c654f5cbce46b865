"""Step 7: every shard against its meta, the ledger and the plan; what is left is authenticated.

A record's line is fixed by the plan but for its counters, its outcome and what was told beside it, so a line
is first compared with the bytes it must have around those. A line that differs is taken apart slowly, to say
what is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from audits.channel_r import RecordReader, Reference, record_wrong
from audits.fault import Fault, Found
from audits.jsonc import JsonFault, canonical, parse, parse_machine
from audits.leaves import LeafReader, Tree
from audits.ledger import Ledger
from audits.load import LARGE, SMALL, Folder, inflate, moment, sha256
from audits.schema import Schema
from audits.study import Study, Unit

_SHARD = re.compile(r"records/([^/]+)/([0-9]{5})\.(jsonl\.gz|meta\.json)")
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
        tail = f',"shard":{shard},"unit":"{unit.id}"}}'
        at = 0
        for request in range(first, end):
            for row in range(unit.rows):
                draw, seed, line = request * unit.rows + row, unit.first + request, split[at]
                at += 1
                middle = f',"draw":{draw},"outcome":'.encode()
                after = f',"row":{row},"seal":"{self._seal}","seed":"{seed}"{tail}'.encode()
                counters, found, rest = line.removeprefix(b'{"attempt":1,"counters":').partition(middle)
                outcome = rest.removesuffix(after)
                good = found and len(outcome) + len(after) == len(rest) and line.startswith(b'{"attempt":1,')
                sums = self.part("counters", counters) if good else None
                wrong: tuple[int, ...] | None = ()
                if beside is not None and sums is not None:
                    # No text in canonical JSON holds these bytes: its quotation marks are escaped.
                    outcome, _, record = outcome.partition(b',"record":')
                    if self.part("outcome", outcome) is not None:
                        wrong = beside.mismatches(outcome, record)
                if sums is None or wrong is None or self.part("outcome", outcome) is None:
                    place = f"{file} line {at}"
                    raise self.explain(line, unit, shard, request, row, place, beside is not None)
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
        self, line: bytes, unit: Unit, shard: int, request: int, row: int, place: str, recorded: bool = False
    ) -> Fault:
        """What is wrong with a line, taken apart field by field; ``recorded`` if it should have a record."""
        try:
            record = parse_machine(line + b"\n")
            self._schema.check(record, place)
        except Fault as fault:
            return fault.at(place)
        planned = {
            "seal": self._seal, "unit": unit.id, "shard": shard, "attempt": 1, "row": row,
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


def _check_meta(
    meta: dict[str, Any], unit: Unit, shard: int, context: tuple[str, str, str], file: str
) -> None:
    study, seal, sealed_at = context
    first, end = unit.span(shard)
    planned = {
        "study": study, "seal": seal, "unit": unit.id, "shard": shard, "requests": end - first,
        "rows": unit.rows, "first_seed": str(unit.first + first), "environment": unit.environment,
    }  # fmt: skip
    if not unit.exact:  # a tree has as many leaves as its lines, which are counted when they are read
        planned["draws"] = (end - first) * unit.rows
    for key, value in planned.items():
        if meta[key] != value:
            raise Fault(f"is {meta[key]!r}, planned as {value!r}", file=file, pointer=f"/{key}")
    if ("tree" in meta) != unit.exact:
        raise Fault("is there exactly for a unit of an exact stage", file=file, pointer="/tree")
    started = moment(meta["started"], file, "/started")
    if moment(meta["ended"], file, "/ended") < started:
        raise Fault("is before it started", file=file, pointer="/ended")
    if started < moment(sealed_at, "ledger.jsonl", "/time"):
        raise Fault("is before the seal", file=file, pointer="/started")


def check_records(
    folder: Folder, study: Study, ledger: Ledger, schemas: dict[str, Schema], seal: str, found: Found
) -> Records:
    """Authenticate every shard, and account for every unit of the plan."""
    records = Records()
    reader = LineReader(schemas["record"], seal)
    leaves = LeafReader(schemas["leaf"], seal, reader.part) if study.stages("exact") else None
    context = (study.id, seal, ledger.sealed_at)
    beside = {
        c["id"]: RecordReader(Reference.of(c["records"], study.events[c["id"]].get("records")), reader.part)
        for c in study.configurations
        if "records" in c
    }

    def bad(unit: str, fault: Fault) -> None:
        found.faults.append(fault)
        records.bad.add(unit)

    seen: set[tuple[str, int]] = set()
    for path in folder.files("records/"):
        match = _SHARD.fullmatch(path)
        if match is not None:
            key = match.group(1), int(match.group(2))
            seen.add(key)
            if key not in ledger.stored:
                bad(key[0], Fault("the ledger stored no such shard", file=path))
    for (name, shard), body in ledger.stored.items():
        stem = f"records/{name}/{shard:05d}"
        unit = study.units.get(name)
        if unit is None or shard >= unit.shards:
            bad(name, Fault("stored, but not in the plan", file=stem))
            continue
        tally = records.tallies.setdefault(name, Tally())
        try:
            networks = ledger.networks[name, shard]
            meta, lines = _check_shard(folder, unit, shard, body, networks, schemas["shard-meta"], context)
            if leaves is not None and unit.exact:
                files = f"{stem}.jsonl.gz", f"{stem}.meta.json"
                records.trees[name] = leaves.tree(unit, lines, meta, files)
                tally.seeds.append((unit.first, unit.first + unit.requests))
            else:
                told = beside.get(unit.configuration)
                reader.shard(unit, shard, lines, f"{stem}.jsonl.gz", tally, told)
        except Fault as fault:
            bad(name, fault)
    for name in sorted({*ledger.invalid} - {*study.units}):
        bad(name, Fault(f"{name} is INVALID, but not in the plan", file="ledger.jsonl"))
    found.applied += sum(tally.draws for tally in records.tallies.values())
    found.applied += sum(len(tree.leaves) for tree in records.trees.values())
    _account(study, ledger, records, found)
    return records


def _check_shard(
    folder: Folder,
    unit: Unit,
    shard: int,
    body: dict[str, Any],
    networks: frozenset[str],
    schema: Schema,
    context: tuple[str, str, str],
) -> tuple[dict[str, Any], bytes]:
    """A shard's meta and lines, authenticated but for what each line says."""
    stem = f"records/{unit.id}/{shard:05d}"
    meta_file, file = f"{stem}.meta.json", f"{stem}.jsonl.gz"
    meta_read = folder.read(meta_file, SMALL)
    if meta_read.digest != body["meta_sha256"]:
        raise Fault("its bytes are not those the ledger stored", file=meta_file)
    meta = folder.machine(meta_file, SMALL)
    schema.check(meta, meta_file)
    _check_meta(meta, unit, shard, context, meta_file)
    if meta["network"] not in networks:
        what = f"is {meta['network']!r}; no collection started before the shard was stored says so"
        raise Fault(what, file=meta_file, pointer="/network")
    if body["draws"] != meta["draws"]:
        what = f"has {meta['draws']} draws, the ledger {body['draws']}"
        raise Fault(what, file=meta_file, pointer="/draws")
    read = folder.read(file, min(LARGE, body["records_size"]), keep=False)
    for key, value in (("records_sha256", read.digest), ("records_size", len(read.data))):
        if value != body[key]:
            raise Fault(f"its bytes are not those the ledger stored ({key})", file=file)
        if value != meta[key]:
            raise Fault("is not that of the records", file=meta_file, pointer=f"/{key}")
    try:
        lines = inflate(read.data, meta["lines_size"])
    except Fault as fault:
        raise fault.at(file) from None
    if sha256(lines) != meta["lines_sha256"]:
        raise Fault("is not that of the records' lines", file=meta_file, pointer="/lines_sha256")
    return meta, lines


def _account(study: Study, ledger: Ledger, records: Records, found: Found) -> None:
    """Every planned unit is whole, INVALID, or missing where the protocol bounds that."""
    bounded = study.protocol["missing"] == "bound" and not ledger.complete
    for name, unit in study.units.items():
        have = {shard for stored, shard in ledger.stored if stored == name}
        if name in ledger.invalid:
            records.lost[name] = f"INVALID: {ledger.invalid[name]}"
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
