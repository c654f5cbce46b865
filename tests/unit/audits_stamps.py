"""Time-stamp authorities of the tests: their certificates, requests, and tokens by hand or by openssl."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from audits_tools import run
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

STAMPING = ExtendedKeyUsageOID.TIME_STAMPING
MIDDAY = datetime(2026, 11, 29, 12, tzinfo=UTC)
NONCE = 0x1234567890
_HASHES: dict[str, tuple[str, Any]] = {
    "sha1": ("1.3.14.3.2.26", hashes.SHA1()), "sha256": ("2.16.840.1.101.3.4.2.1", hashes.SHA256()),
    "sha384": ("2.16.840.1.101.3.4.2.2", hashes.SHA384()),
    "sha512": ("2.16.840.1.101.3.4.2.3", hashes.SHA512()),
}  # fmt: skip
_ECDSA = {"sha256": "1.2.840.10045.4.3.2", "sha384": "1.2.840.10045.4.3.3", "sha512": "1.2.840.10045.4.3.4"}


@cache
def key(kind: str, name: str = "") -> Any:
    """A private key; the same one for the same name."""
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True, kw_only=True)
class Authority:
    """A certificate and its key."""

    name: str
    private: Any
    certificate: x509.Certificate

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def authority(
    name: str, issuer: Authority | None = None, *, kind: str = "ec", ca: bool | None = True,
    path: int | None = None, usage: Any = None, critical: bool = True,
    first: datetime = MIDDAY - timedelta(days=100), last: datetime = MIDDAY + timedelta(days=3000),
) -> Authority:  # fmt: skip
    """A new certificate, issued by another one or by itself."""
    private = key(kind, name)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(private.public_key())
        .serial_number(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
        .not_valid_before(first)
        .not_valid_after(last)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
    )
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=path), critical=True)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usage), critical=critical)
    signing = issuer.private if issuer else private
    return Authority(name=name, private=private, certificate=builder.sign(signing, hashes.SHA256()))


def stamper(issuer: Authority, name: str = "stamper", **options: Any) -> Authority:
    return authority(name, issuer, **({"ca": None, "usage": [STAMPING]} | options))


def tlv(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + content


def seq(*parts: bytes) -> bytes:
    return tlv(0x30, *parts)


def integer(value: int) -> bytes:
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def oid(text: str) -> bytes:
    arcs = [int(arc) for arc in text.split(".")]
    content = b""
    for arc in [40 * arcs[0] + arcs[1], *arcs[2:]]:
        octets = [arc & 0x7F]
        while arc := arc >> 7:
            octets.append(0x80 | (arc & 0x7F))
        content += bytes(reversed(octets))
    return tlv(0x06, content)


def imprint(data: bytes, name: str = "sha256") -> bytes:
    algorithm = seq(oid(_HASHES[name][0]), tlv(0x05))
    return seq(algorithm, tlv(0x04, hashlib.new(name, data).digest()))


def request(
    data: bytes, nonce: int | None = NONCE, asks: bool = True, version: int = 1, name: str = "sha256"
) -> bytes:
    parts = [integer(version), imprint(data, name)]
    parts += [integer(nonce)] if nonce is not None else []
    return seq(*parts, *([tlv(0x01, b"\xff")] if asks else []))


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a token says; every field may be changed by a test."""

    data: bytes
    signer: Authority
    chain: tuple[Authority, ...] = ()
    time: datetime = MIDDAY
    nonce: int | None = NONCE
    status: int = 0
    version: int = 1
    imprint: str = "sha256"
    digest: str = "sha256"
    ess: int = 2
    """The version of the signing-certificate attribute; 0 for none."""
    named: bytes | None = None
    """The certificate that the attribute names, if it is another than the signer's."""
    issuer_serial: bool = False
    content_type: str = "1.2.840.113549.1.9.16.1.4"
    signed_info: bytes | None = None
    """The TSTInfo whose digest is signed, if it is another."""
    by_identifier: bool = False
    infos: int = 1
    held: bool = True
    extensions: bytes = b""
    attributes: Callable[[list[bytes]], list[bytes]] = field(default=lambda parts: parts)

    def response(self) -> bytes:
        moment = self.time.strftime("%Y%m%d%H%M%S").encode()
        if self.time.microsecond:
            moment += b"." + f"{self.time.microsecond:06d}".rstrip("0").encode()
        info = [integer(self.version), oid("1.2.3.4"), imprint(self.data, self.imprint), integer(7)]
        info += [tlv(0x18, moment + b"Z")] + ([integer(self.nonce)] if self.nonce is not None else [])
        told = seq(*info, self.extensions)
        certificates = [one.der for one in (self.signer, *self.chain)]
        parts = [
            integer(3), tlv(0x31, self._hash()),
            seq(oid("1.2.840.113549.1.9.16.1.4"), tlv(0xA0, tlv(0x04, told))),
            tlv(0xA0, *certificates) if self.held else b"",
            tlv(0x31, *[self._signer_info(told)] * self.infos),
        ]  # fmt: skip
        token = seq(oid("1.2.840.113549.1.7.2"), tlv(0xA0, seq(*parts)))
        return seq(seq(integer(self.status)), token)

    def _hash(self) -> bytes:
        return seq(oid(_HASHES[self.digest][0]), tlv(0x05))

    def _signer_info(self, told: bytes) -> bytes:
        signed = told if self.signed_info is None else self.signed_info
        attributes = [
            seq(oid("1.2.840.113549.1.9.3"), tlv(0x31, oid(self.content_type))),
            seq(oid("1.2.840.113549.1.9.4"), tlv(0x31, tlv(0x04, hashlib.new(self.digest, signed).digest()))),
        ]
        if self.ess:
            attributes.append(self._ess())
        content = b"".join(self.attributes(attributes))
        private = self.signer.private
        algorithm = _HASHES[self.digest][1]
        if isinstance(private, rsa.RSAPrivateKey):
            signature = private.sign(tlv(0x31, content), padding.PKCS1v15(), algorithm)
            kind = seq(oid("1.2.840.113549.1.1.1"), tlv(0x05))
        else:
            signature = private.sign(tlv(0x31, content), ec.ECDSA(algorithm))
            kind = seq(oid(_ECDSA.get(self.digest, _ECDSA["sha256"])))
        version, sid = 1, seq(self._issuer(), integer(self.signer.certificate.serial_number))
        if self.by_identifier:
            found = self.signer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
            version, sid = 3, tlv(0x80, found.value.digest)
        return seq(integer(version), sid, self._hash(), tlv(0xA0, content), kind, tlv(0x04, signature))

    def _issuer(self) -> bytes:
        return self.signer.certificate.issuer.public_bytes()

    def _ess(self) -> bytes:
        named = self.named or self.signer.der
        name = "sha1" if self.ess == 1 else "sha256"
        issuer = seq(seq(tlv(0xA4, self._issuer())), integer(self.signer.certificate.serial_number))
        one = seq(tlv(0x04, hashlib.new(name, named).digest()), issuer if self.issuer_serial else b"")
        kind = "1.2.840.113549.1.9.16.2.12" if self.ess == 1 else "1.2.840.113549.1.9.16.2.47"
        return seq(oid(kind), tlv(0x31, seq(seq(one))))

    def with_(self, **changes: Any) -> Stamp:
        return replace(self, **changes)


_CONFIGURATION = """
[tsa]
default_tsa = here
[here]
serial = {folder}/serial
crypto_device = builtin
signer_digest = {digest}
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1, millisecs:500, microsecs:100
ordering = yes
tsa_name = yes
ess_cert_id_chain = yes
ess_cert_id_alg = {ess}
"""


def by_openssl(
    folder: Path, data: bytes, signer: Authority, chain: tuple[Authority, ...], digest: str = "sha256",
    ess: str = "sha256",
) -> tuple[bytes, bytes]:  # fmt: skip
    """A request and its response as the program ``openssl ts`` makes them, stamped now."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data").write_bytes(data)
    (folder / "signer.pem").write_bytes(signer.pem)
    (folder / "chain.pem").write_bytes(b"".join(one.pem for one in chain))
    encoding = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "signer.key").write_bytes(signer.private.private_bytes(*encoding))
    configuration = _CONFIGURATION.format(folder=folder, digest=digest, ess=ess)
    (folder / "ts.cnf").write_text(configuration)
    query = ("-query", "-data", str(folder / "data"), "-sha256", "-cert", "-out", str(folder / "q"))
    run("openssl", "ts", *query)
    reply = ("-reply", "-config", str(folder / "ts.cnf"), "-queryfile", str(folder / "q"))
    keys = ("-signer", str(folder / "signer.pem"), "-inkey", str(folder / "signer.key"))
    run("openssl", "ts", *reply, *keys, "-chain", str(folder / "chain.pem"), "-out", str(folder / "r"))
    return (folder / "q").read_bytes(), (folder / "r").read_bytes()
