"""TimeStampReq, TimeStampResp and the token in it, as values (RFC 3161, RFC 5652). Nothing is judged here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from prereg.seal import der
from prereg.seal.der import NotDer, Parts, Value

SIGNED_DATA = "1.2.840.113549.1.7.2"
TST_INFO = "1.2.840.113549.1.9.16.1.4"
CONTENT_TYPE = "1.2.840.113549.1.9.3"
MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
SIGNING_CERTIFICATE = "1.2.840.113549.1.9.16.2.12"
SIGNING_CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.47"
SHA1 = "1.3.14.3.2.26"
SHA256 = "2.16.840.1.101.3.4.2.1"

MAX_BYTES = 65_536
"""Longest request or response, in bytes; real responses have 1,500 to 8,000."""

_TIME = re.compile(r"([0-9]{14})(?:\.([0-9]*[1-9]))?Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imprint:
    """What is stamped: the digest of some bytes."""

    algorithm: str
    """Object identifier of the hash."""
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A TimeStampReq."""

    version: int
    imprint: Imprint
    nonce: int | None
    asks_for_certificate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TstInfo:
    """What a token says."""

    version: int
    imprint: Imprint
    time: datetime
    """`genTime`, UTC; what is finer than a microsecond is dropped."""
    nonce: int | None
    critical: tuple[str, ...]
    """Identifiers of the extensions that may not be passed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignerInfo:
    """Who signed a token, and how."""

    issuer: bytes | None
    """The issuer's name in DER, with `serial`; None if the certificate is named by `key_id`."""
    serial: int | None
    key_id: bytes | None
    digest_algorithm: str
    attributes: tuple[tuple[str, tuple[Value, ...]], ...]
    """The signed attributes, each with its values."""
    signed: bytes
    """The bytes that the signature is over: the attributes as a SET."""
    signature_algorithm: str
    signature: bytes

    def attribute(self, kind: str) -> Value | None:
        """The one value of an attribute, or None. Raises NotDer if it is there twice or has not one value."""
        found = [values for name, values in self.attributes if name == kind]
        if not found:
            return None
        if len(found) > 1 or len(found[0]) != 1:
            raise NotDer(f"the signed attribute {kind} has not exactly one value")
        return found[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A TimeStampToken: CMS SignedData over a TSTInfo."""

    info: TstInfo
    content: bytes
    """The bytes of the TSTInfo."""
    certificates: tuple[bytes, ...]
    signers: tuple[SignerInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A TimeStampResp."""

    status: int
    said: str
    """The authority's own words."""
    token: Token | None


def parse_request(data: bytes) -> Request:
    """Read a TimeStampReq. Raises NotDer."""
    parts = der.read(data, "the request").parts(der.SEQUENCE, "the request")
    version = parts.take().integer("the version")
    imprint = _imprint(parts.take())
    parts.optional(der.OID)  # a policy
    nonce = parts.optional(der.INTEGER)
    asks = parts.optional(der.BOOLEAN)
    parts.optional(0xA0)  # extensions
    parts.end()
    return Request(
        version=version,
        imprint=imprint,
        nonce=None if nonce is None else nonce.integer("the nonce"),
        asks_for_certificate=asks is not None and asks.boolean("certReq"),
    )


def parse_response(data: bytes) -> Response:
    """Read a TimeStampResp. Raises NotDer."""
    parts = der.read(data, "the response").parts(der.SEQUENCE, "the response")
    status = parts.take().parts(der.SEQUENCE, "the status")
    number = status.take().integer("the status")
    said = status.optional(der.SEQUENCE)
    words = [] if said is None else said.parts(der.SEQUENCE, "the status string").all()
    token = _token(parts.take()) if parts.rest else None
    parts.end()
    text = " ".join(w.content.decode("utf-8", "replace") for w in words)
    return Response(status=number, said="".join(ch for ch in text if ch.isprintable())[:200], token=token)


def certificate_hashes(attribute: Value, *, v2: bool) -> list[tuple[str, bytes]]:
    """The hashes of a signing-certificate attribute, each with its algorithm's identifier.

    Without `v2` the algorithm is SHA-1. Raises NotDer.
    """
    parts = attribute.parts(der.SEQUENCE, "the signing-certificate attribute")
    found = []
    for one in parts.take().parts(der.SEQUENCE, "its certificates").all():
        fields = one.parts(der.SEQUENCE, "ESSCertID")
        algorithm = fields.optional(der.SEQUENCE) if v2 else None
        name = SHA1 if not v2 else SHA256 if algorithm is None else _algorithm(algorithm)
        found.append((name, fields.take().octets("certHash")))
        fields.optional(der.SEQUENCE)  # issuer and serial number: the hash says more
        fields.end()
    parts.optional(der.SEQUENCE)  # policies
    parts.end()
    return found


def _token(value: Value) -> Token:
    outer = value.parts(der.SEQUENCE, "the token")
    if (kind := outer.take().oid("the token's type")) != SIGNED_DATA:
        raise NotDer(f"the token is of type {kind}, not SignedData")
    data = _explicit(outer.take(), 0, "the token's content").parts(der.SEQUENCE, "SignedData")
    outer.end()
    data.take().integer("the version of SignedData")
    data.take().expect(der.SET, "the digest algorithms")
    content = data.take().parts(der.SEQUENCE, "the signed content")
    if (kind := content.take().oid("the content's type")) != TST_INFO:
        raise NotDer(f"the signed content is of type {kind}, not TSTInfo")
    info = _explicit(content.take(), 0, "the signed content").octets("TSTInfo")
    content.end()
    certificates = data.optional(0xA0)
    data.optional(0xA1)  # revocation lists
    signers = data.take().parts(der.SET, "the signer infos").all()
    data.end()
    pool = [] if certificates is None else Parts(rest=certificates.content, what="the certificates").all()
    return Token(
        info=_info(info),
        content=info,
        certificates=tuple(c.whole for c in pool if c.tag == der.SEQUENCE),
        signers=tuple(_signer(s) for s in signers),
    )


def _info(data: bytes) -> TstInfo:
    parts = der.read(data, "TSTInfo").parts(der.SEQUENCE, "TSTInfo")
    version = parts.take().integer("the version of TSTInfo")
    parts.take().oid("the policy")
    imprint = _imprint(parts.take())
    parts.take().integer("the serial number")
    time = _time(parts.take())
    parts.optional(der.SEQUENCE)  # accuracy
    parts.optional(der.BOOLEAN)  # ordering
    nonce = parts.optional(der.INTEGER)
    parts.optional(0xA0)  # the authority's name
    extensions = parts.optional(0xA1)
    parts.end()
    return TstInfo(
        version=version,
        imprint=imprint,
        time=time,
        nonce=None if nonce is None else nonce.integer("the nonce"),
        critical=() if extensions is None else _critical(extensions),
    )


def _critical(extensions: Value) -> tuple[str, ...]:
    """The identifiers of those that are critical."""
    found = []
    for one in Parts(rest=extensions.content, what="the extensions").all():
        fields = one.parts(der.SEQUENCE, "an extension")
        name = fields.take().oid("an extension")
        critical = fields.optional(der.BOOLEAN)
        if critical is not None and critical.boolean("critical"):
            found.append(name)
        fields.take().octets("an extension")
        fields.end()
    return tuple(found)


def _signer(value: Value) -> SignerInfo:
    parts = value.parts(der.SEQUENCE, "the signer info")
    parts.take().integer("the version of the signer info")
    issuer, serial, key_id = None, None, None
    if (named := parts.optional(0x80)) is not None:
        key_id = named.content
    else:
        sid = parts.take().parts(der.SEQUENCE, "the signer's identifier")
        issuer, serial = sid.take().whole, sid.take().integer("the serial number")
        sid.end()
    digest_algorithm = _algorithm(parts.take())
    attributes = parts.optional(0xA0)
    if attributes is None:
        raise NotDer("the signer info has no signed attributes")
    found = []
    for one in Parts(rest=attributes.content, what="the signed attributes").all():
        fields = one.parts(der.SEQUENCE, "a signed attribute")
        name = fields.take().oid("a signed attribute")
        found.append((name, tuple(fields.take().parts(der.SET, f"the attribute {name}").all())))
        fields.end()
    signature_algorithm = _algorithm(parts.take())
    signature = parts.take().octets("the signature")
    parts.optional(0xA1)  # unsigned attributes
    parts.end()
    return SignerInfo(
        issuer=issuer,
        serial=serial,
        key_id=key_id,
        digest_algorithm=digest_algorithm,
        attributes=tuple(found),
        signed=b"\x31" + attributes.whole[1:],
        signature_algorithm=signature_algorithm,
        signature=signature,
    )


def _imprint(value: Value) -> Imprint:
    parts = value.parts(der.SEQUENCE, "the imprint")
    found = Imprint(algorithm=_algorithm(parts.take()), digest=parts.take().octets("the imprint"))
    parts.end()
    return found


def _algorithm(value: Value) -> str:
    """The identifier of an algorithm; its parameters, NULL or none for all that are known, say nothing."""
    parts = value.parts(der.SEQUENCE, "an algorithm")
    name = parts.take().oid("an algorithm")
    parts.optional(der.NULL)
    parts.end()
    return name


def _explicit(value: Value, number: int, what: str) -> Value:
    parts = value.parts(0xA0 + number, what)
    inner = parts.take()
    parts.end()
    return inner


def _time(value: Value) -> datetime:
    text = value.expect(der.GENERALIZED_TIME, "genTime").content.decode("ascii", "replace")
    match = _TIME.fullmatch(text)
    if match is None:
        raise NotDer(f"genTime {text[:40]!r} is not YYYYMMDDhhmmss[.f]Z")
    try:
        whole = datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise NotDer(f"genTime {text[:40]} does not exist") from None
    return whole.replace(microsecond=int((match[2] or "")[:6].ljust(6, "0")))
