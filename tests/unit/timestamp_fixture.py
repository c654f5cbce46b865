"""A time-stamping authority for tests: certificates, tokens with any fault, the real `openssl ts`, a server.

with serve(authority.stamp) as url: ...      # answers by openssl, and stops by itself
authority.token(request, nonce=None, ...)    # answers written here, for what openssl would not write
"""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from prereg.seal.timestamp_token import parse_request

NOW = datetime.now(UTC).replace(microsecond=0)
CA = x509.BasicConstraints(ca=True, path_length=None)
STAMPING = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def new_key(kind: str = "ec") -> Key:
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def certificate(
    subject: str,
    key: Key,
    issuer: str,
    issuer_key: Key,
    *,
    ca: bool = False,
    path_length: int | None = None,
    usage: x509.ExtendedKeyUsage | None = None,
    critical: bool = True,
    begins: datetime = NOW - timedelta(days=1),
    ends: datetime = NOW + timedelta(days=30),
) -> x509.Certificate:
    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=path_length), critical=True)
    )
    if usage is not None:
        builder = builder.add_extension(usage, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256())


@dataclass(slots=True, kw_only=True)
class Authority:
    """A root, a certificate for stamping, and what signs with it."""

    folder: Path
    kind: str = "ec"
    usage: x509.ExtendedKeyUsage | None = STAMPING
    critical: bool = True
    begins: datetime = NOW - timedelta(days=1)
    ends: datetime = NOW + timedelta(days=30)
    root_ends: datetime = NOW + timedelta(days=60)
    through: bool = False
    """Whether an authority stands between the root and the certificate for stamping."""
    middle_ca: bool = True
    path_lengths: tuple[int | None, int | None] = (None, None)
    """How many authorities the root and the middle allow below them."""
    requests: list[bytes] = field(default_factory=list)
    root: x509.Certificate = field(init=False)
    chain: list[x509.Certificate] = field(init=False)
    key: Key = field(init=False)
    leaf: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        root_key, self.key = new_key("rsa"), new_key(self.kind)
        self.root = certificate(
            "root", root_key, "root", root_key, ca=True, ends=self.root_ends, path_length=self.path_lengths[0]
        )
        issuer, issuer_key, self.chain = "root", root_key, []
        if self.through:
            middle_key = new_key()
            self.chain = [
                certificate(
                    "middle",
                    middle_key,
                    issuer,
                    issuer_key,
                    ca=self.middle_ca,
                    ends=self.root_ends,
                    path_length=self.path_lengths[1],
                )
            ]
            issuer, issuer_key = "middle", middle_key
        self.leaf = certificate(
            "stamps",
            self.key,
            issuer,
            issuer_key,
            usage=self.usage,
            critical=self.critical,
            begins=self.begins,
            ends=self.ends,
        )

    @property
    def roots(self) -> bytes:
        return self.root.public_bytes(Encoding.PEM)

    def stamp(self, request: bytes) -> bytes:
        """The answer of `openssl ts -reply`."""
        self.requests.append(request)
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        for name, data in {
            "leaf.pem": self.leaf.public_bytes(Encoding.PEM),
            "key.pem": pem,
            "chain.pem": b"".join(c.public_bytes(Encoding.PEM) for c in [*self.chain, self.root]),
            "serial": b"01\n",
            "request": request,
            "ts.cnf": (
                b"[tsa]\ndefault_tsa=t\n[t]\nserial=serial\nsigner_cert=leaf.pem\ncerts=chain.pem\n"
                b"signer_key=key.pem\nsigner_digest=sha256\ndefault_policy=1.2.3.4\n"
                b"digests=sha256,sha384,sha512\naccuracy=secs:1\ness_cert_id_alg=sha256\n"
            ),
        }.items():
            (self.folder / name).write_bytes(data)
        command = ["openssl", "ts", "-reply", "-config", "ts.cnf", "-queryfile", "request", "-out", "reply"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return (self.folder / "reply").read_bytes()

    def token(self, request: bytes, **faults: Any) -> bytes:
        """An answer written here; see `_FAULTS` for what may be other than it should be."""
        asked = parse_request(request)
        f = _FAULTS | {"nonce": asked.nonce, "imprint": asked.imprint.digest, "leaf": self.leaf} | faults
        imprint = seq(seq(oid("2.16.840.1.101.3.4.2.1"), tlv(5)), tlv(4, f["imprint"]))
        nonce = b"" if f["nonce"] is None else integer(f["nonce"])
        info = seq(
            integer(f["version"]),
            oid("1.2.3.4"),
            imprint,
            integer(7),
            tlv(0x18, f["time"].encode()),
            nonce,
            f["more"],
        )
        named = hashlib.new(f["named_hash"], f["leaf"].public_bytes(Encoding.DER)).digest()
        v2 = f["named_hash"] != "sha1"
        ess = seq(seq(seq(tlv(4, f["named"] or named))))
        attributes = [
            attribute("1.2.840.113549.1.9.3", oid(f["content_type"])),
            attribute("1.2.840.113549.1.9.4", tlv(4, f["digest"] or hashlib.sha256(info).digest())),
            attribute("1.2.840.113549.1.9.16.2.47" if v2 else "1.2.840.113549.1.9.16.2.12", ess),
        ]
        attributes = [a for i, a in enumerate(attributes) if i not in f["without"]]
        signed = b"".join(attributes)
        algorithm = {"sha256": hashes.SHA256(), "sha1": hashes.SHA1()}[f["hash"]]
        if isinstance(self.key, rsa.RSAPrivateKey):
            value, kind = self.key.sign(tlv(0x31, signed), padding.PKCS1v15(), algorithm), RSA_SHA256
        else:
            value, kind = self.key.sign(tlv(0x31, signed), ec.ECDSA(algorithm)), ECDSA_SHA256
        signer = seq(
            integer(1),
            seq(self.leaf.issuer.public_bytes(), integer(self.leaf.serial_number)),
            seq(oid("2.16.840.1.101.3.4.2.1" if f["hash"] == "sha256" else "1.3.14.3.2.26")),
            tlv(0xA0, signed),
            seq(oid(kind)),
            tlv(4, f["value"] or value),
        )
        pool = [] if f["no_certificates"] else [self.leaf, *self.chain]
        data = seq(
            integer(3),
            tlv(0x31, seq(oid("2.16.840.1.101.3.4.2.1"))),
            seq(oid("1.2.840.113549.1.9.16.1.4"), tlv(0xA0, tlv(4, info))),
            tlv(0xA0, *(c.public_bytes(Encoding.DER) for c in pool)),
            tlv(0x31, *([signer] * f["signers"])),
        )
        status = seq(integer(f["status"]), seq(tlv(0x0C, b"said")))
        token = seq(oid("1.2.840.113549.1.7.2"), tlv(0xA0, data))
        return seq(status, b"" if f["no_token"] else token)


ECDSA_SHA256, RSA_SHA256 = "1.2.840.10045.4.3.2", "1.2.840.113549.1.1.11"
_FAULTS: dict[str, Any] = {
    "version": 1,
    "more": b"",
    "time": f"{NOW:%Y%m%d%H%M%S}Z",
    "content_type": "1.2.840.113549.1.9.16.1.4",
    "digest": None,
    "named": None,
    "named_hash": "sha256",
    "without": (),
    "hash": "sha256",
    "value": None,
    "signers": 1,
    "no_certificates": False,
    "no_token": False,
    "status": 0,
}


def tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    long = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(long)]) + long + content


def seq(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def integer(value: int) -> bytes:
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def oid(text: str) -> bytes:
    first, second, *rest = (int(n) for n in text.split("."))
    out = b""
    for number in (40 * first + second, *rest):
        piece = [number & 0x7F]
        while number := number >> 7:
            piece.append(0x80 | number & 0x7F)
        out += bytes(reversed(piece))
    return tlv(6, out)


def attribute(kind: str, value: bytes) -> bytes:
    return seq(oid(kind), tlv(0x31, value))


@contextlib.contextmanager
def serve(
    answer: Callable[[bytes], bytes], *, kind: str = "application/timestamp-reply", status: int = 200
) -> Iterator[str]:
    """An HTTP server on this machine whose answers `answer` makes; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/timestamp-query"
            body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status in (301, 302, 307):
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/tsr"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
