"""Every parser of evidence on both sides, and the one kind of error that it may raise."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real_stamps import SIGNATURE, STAMPS, edited
from real_tokens import MESSAGE, NAMESPACE, edited_line, edited_signature

import audits.certificates
import audits.der
import audits.jsonc
import audits.ledger
import audits.load
import audits.schema
import audits.sshsig
import audits.timestamp
import audits.trust
from audits.fault import Fault, Found
from prereg.codec import canonical, convert, study_files
from prereg.errors import PreregError
from prereg.model import record, seal, study
from prereg.seal import allowed_signers, manifest, metas, packing, revocation, sshsig, timestamp, trust
from prereg.store import ledger

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas" / "v1"
GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
AUTHORED = ("protocol", "seeds", "events", "predicates", "predictions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """A parser, what it may raise, and how bytes are dressed so that they come further in."""

    parse: Callable[[bytes], object]
    raises: type[Exception]
    dress: Callable[[bytes], bytes] = bytes


@functools.cache
def _checker(name: str) -> audits.schema.Schema:
    return audits.schema.Schema(audits.jsonc.parse((SCHEMAS / f"{name}.schema.json").read_bytes()))


def _schema(name: str) -> Callable[[bytes], object]:
    checker = _checker(name)
    return lambda data: checker.check(audits.jsonc.parse(data), name)


def _armored(data: bytes) -> bytes:
    return sshsig._armor(sshsig.MAGIC + b"\x00\x00\x00\x01" + data)


def _packed(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return (
        GZIP + packer.compress(data) + packer.flush() + zlib.crc32(data).to_bytes(4, "little") + b"\x00" * 4
    )


def _der(data: bytes) -> bytes:
    return (
        b"\x30" + (bytes([len(data)]) if len(data) < 128 else b"\x82" + len(data).to_bytes(2, "big")) + data
    )


def _prereg_token(data: bytes) -> object:
    return sshsig.verify(data, MESSAGE, namespace=NAMESPACE, where="-")


def _auditor_token(data: bytes) -> object:
    return audits.sshsig.verify(MESSAGE, audits.sshsig.parse(data), NAMESPACE)


def _prereg_stamp(data: bytes) -> object:
    return timestamp.verify_timestamp(STAMPS.request, data, signature=SIGNATURE, roots=STAMPS.roots)


def _auditor_stamp(data: bytes) -> object:
    token = audits.timestamp.check_token(STAMPS.request, data, SIGNATURE)
    roots = audits.certificates.load_roots(STAMPS.roots, "-")
    audits.certificates.check_chain(token.signer, token.others, roots, token.time)
    return token.time


def _unpacked(data: bytes) -> object:
    text = {"lines_size": len(data), "lines_sha256": canonical.digest(data)}
    meta: Any = type("Meta", (), text)
    return packing.unpack(data, meta, "-")


def _study(name: str) -> Callable[[bytes], object]:
    types: dict[str, Any] = {"protocol": study.Protocol, "seeds": study.Seeds}
    if name in types:
        return lambda data: convert.read_authored(data, name, types[name], where="-")
    return lambda data: study_files.parse_study({f"{n}.json": data for n in AUTHORED})


PREREG: dict[str, Callable[[bytes], object]] = {
    "json": lambda data: canonical.loads(data, where="-"),
    "machine json": lambda data: canonical.loads_machine(data, where="-"),
    "ledger": ledger.read_ledger,
    "manifest": manifest.read_manifest,
    "head": lambda data: convert.read_machine(data, "head", seal.Head, where="-"),
    "meta": lambda data: metas.read_meta(data, where="-"),
    "meta as a value": lambda data: convert.read_machine(data, "shard-meta", record.ShardMeta, where="-"),
    "roles": lambda data: trust.parse_roles(data, where="-"),
    "revocations": lambda data: revocation.parse_revocations(data, where="-"),
    "allowed signers": lambda data: allowed_signers.parse_allowed_signers(data, where="-"),
    "shard": _unpacked,
    "roots": lambda data: timestamp.load_roots(data, where="-"),
    **{name: _study(name) for name in AUTHORED[:3]},
}
AUDITOR: dict[str, Callable[[bytes], object]] = {
    "json": audits.jsonc.parse,
    "machine json": audits.jsonc.parse_machine,
    "ledger": lambda data: audits.ledger.parse_ledger(
        data,
        audits.schema.Schema(audits.jsonc.parse((SCHEMAS / "ledger-entry.schema.json").read_bytes())),
        Found(),
    ),
    "allowed signers": lambda data: audits.trust.parse_signers(data, "-"),
    "shard": lambda data: audits.load.inflate(data, 100),
    "roots": lambda data: audits.certificates.load_roots(data, "-"),
    "certificate": audits.certificates.load,
    **{f"{name} schema": _schema(name) for name in ("manifest", "record", "leaf", "protocol", "shard-meta")},
}
PARSERS: dict[str, Parser] = {
    **{f"prereg {name}": Parser(parse=parse, raises=PreregError) for name, parse in PREREG.items()},
    **{f"auditor {name}": Parser(parse=parse, raises=Fault) for name, parse in AUDITOR.items()},
    "prereg signature": Parser(
        parse=lambda data: sshsig.parse(data, where="-"), raises=PreregError, dress=_armored
    ),
    "auditor signature": Parser(parse=audits.sshsig.parse, raises=Fault, dress=_armored),
    "prereg signature of a token": Parser(parse=_prereg_token, raises=PreregError, dress=edited_signature),
    "auditor signature of a token": Parser(parse=_auditor_token, raises=Fault, dress=edited_signature),
    "prereg key of a token": Parser(parse=PREREG["allowed signers"], raises=PreregError, dress=edited_line),
    "auditor key of a token": Parser(parse=AUDITOR["allowed signers"], raises=Fault, dress=edited_line),
    "prereg packed shard": Parser(parse=_unpacked, raises=PreregError, dress=_packed),
    "auditor packed shard": Parser(
        parse=lambda data: audits.load.inflate(data, 100), raises=Fault, dress=_packed
    ),
    "prereg time stamp": Parser(parse=_prereg_stamp, raises=PreregError, dress=edited),
    "auditor time stamp": Parser(parse=_auditor_stamp, raises=Fault, dress=edited),
    "prereg request": Parser(
        parse=lambda data: timestamp.check_request(data, SIGNATURE), raises=PreregError, dress=_der
    ),
    "auditor request": Parser(
        parse=lambda data: audits.timestamp.check_token(data, STAMPS.responses[0], SIGNATURE),
        raises=Fault,
        dress=_der,
    ),
    "auditor DER": Parser(parse=audits.der.parse, raises=Fault, dress=_der),
}
"""By name; the first word says whose it is."""


def try_one(name: str, data: bytes) -> None:
    """Parse bytes as they are and dressed; whatever is not the parser's own error comes through."""
    parser = PARSERS[name]
    for candidate in {data, parser.dress(data)}:
        try:
            parser.parse(candidate)
        except parser.raises:
            continue
