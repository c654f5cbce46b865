"""Step 7: the bytes of a shard and its meta against the ledger and the plan; not yet what each line says."""

from __future__ import annotations

from typing import Any

from audits.attempts import MOST, Key, stem_of
from audits.fault import Fault, Found
from audits.load import LARGE, SMALL, Folder, inflate, moment, sha256
from audits.schema import Schema
from audits.study import Study, Unit

RECORDS = "records/"


def check_folders(folder: Folder, study: Study, found: Found) -> None:
    """Every folder of records is of a unit of the plan, or of an attempt at one that the protocol allows.

    An empty one is judged too: it holds no file that the ledger could miss.
    """
    most = study.protocol["attempts"] if study.edition >= 3 else 1
    homes = set(study.units)
    homes |= {f"{unit}.attempt-{n}" for unit in study.units for n in range(2, min(most, MOST) + 1)}
    for path, entry in folder.entries.items():
        name = path.removeprefix(RECORDS)
        if entry.kind == "folder" and name != path and "/" not in name and name not in homes:
            found.fault("a folder of no unit of the plan, nor of an attempt that it allows", file=path)


def check_shard(
    folder: Folder,
    unit: Unit,
    key: Key,
    body: dict[str, Any],
    networks: frozenset[str],
    schema: Schema,
    context: tuple[str, str, str],
) -> tuple[dict[str, Any], bytes]:
    """A shard's meta and lines, authenticated but for what each line says."""
    stem = stem_of(key)
    meta_file, file = f"{stem}.meta.json", f"{stem}.jsonl.gz"
    meta_read = folder.read(meta_file, SMALL)
    if meta_read.digest != body["meta_sha256"]:
        raise Fault("its bytes are not those the ledger stored", file=meta_file)
    meta = folder.machine(meta_file, SMALL)
    schema.check(meta, meta_file)
    _check_meta(meta, unit, key, context, meta_file)
    if meta["network"] not in networks:
        what = f"is {meta['network']!r}; no collection started before the shard was stored says so"
        raise Fault(what, file=meta_file, pointer="/network")
    if body["draws"] != meta["draws"]:
        what = f"has {meta['draws']} draws, the ledger {body['draws']}"
        raise Fault(what, file=meta_file, pointer="/draws")
    read = folder.read(file, min(LARGE, body["records_size"]), keep=False)
    for name, value in (("records_sha256", read.digest), ("records_size", len(read.data))):
        if value != body[name]:
            raise Fault(f"its bytes are not those the ledger stored ({name})", file=file)
        if value != meta[name]:
            raise Fault("is not that of the records", file=meta_file, pointer=f"/{name}")
    try:
        lines = inflate(read.data, meta["lines_size"])
    except Fault as fault:
        raise fault.at(file) from None
    if sha256(lines) != meta["lines_sha256"]:
        raise Fault("is not that of the records' lines", file=meta_file, pointer="/lines_sha256")
    return meta, lines


def _check_meta(meta: dict[str, Any], unit: Unit, key: Key, context: tuple[str, str, str], file: str) -> None:
    study, seal, sealed_at = context
    _, attempt, shard = key
    first, end = unit.span(shard)
    planned = {
        "study": study, "seal": seal, "unit": unit.id, "shard": shard, "attempt": attempt,
        "requests": end - first,
        "rows": unit.rows, "first_seed": str(unit.first + first), "environment": unit.environment,
    }  # fmt: skip
    if not unit.exact:  # a tree has as many leaves as its lines, which are counted when they are read
        planned["draws"] = (end - first) * unit.rows
    for name, value in planned.items():
        if meta[name] != value:
            raise Fault(f"is {meta[name]!r}, planned as {value!r}", file=file, pointer=f"/{name}")
    if ("tree" in meta) != unit.exact:
        raise Fault("is there exactly for a unit of an exact stage", file=file, pointer="/tree")
    started = moment(meta["started"], file, "/started")
    if moment(meta["ended"], file, "/ended") < started:
        raise Fault("is before it started", file=file, pointer="/ended")
    if started < moment(sealed_at, "ledger.jsonl", "/time"):
        raise Fault("is before the seal", file=file, pointer="/started")
