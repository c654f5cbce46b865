"""Time from outside (section 18): an RFC 3161 request, the response to it, and what its token proves.

The token is CMS SignedData (RFC 5652). Its bytes are read by the strict DER reader; only certificates and
public keys are left to a library.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from audits import der
from audits.certificates import (
    MAX_CERTIFICATES,
    check_purpose,
    hostile,
    issuer_and_serial,
    key_identifier,
    load,
)
from audits.fault import Fault

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_SIGNED_DATA, _TST_INFO = "1.2.840.113549.1.7.2", "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE, _MESSAGE_DIGEST = "1.2.840.113549.1.9.3", "1.2.840.113549.1.9.4"
_CERTIFICATE, _CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.12", "1.2.840.113549.1.9.16.2.47"
_SHA256 = "2.16.840.1.101.3.4.2.1"
_HASHES = {_SHA256: "sha256", "2.16.840.1.101.3.4.2.2": "sha384", "2.16.840.1.101.3.4.2.3": "sha512"}
_RSA = "1.2.840.113549.1.1.1"
_SIGNATURES = {
    "1.2.840.113549.1.1.11": ("rsa", "sha256"), "1.2.840.113549.1.1.12": ("rsa", "sha384"),
    "1.2.840.113549.1.1.13": ("rsa", "sha512"), "1.2.840.10045.4.3.2": ("ecdsa", "sha256"),
    "1.2.840.10045.4.3.3": ("ecdsa", "sha384"), "1.2.840.10045.4.3.4": ("ecdsa", "sha512"),
}  # fmt: skip
_GRANTED = (0, 1)


class TimestampFault(Fault):
    """A request or response that does not prove a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token that is well signed; whether its signer is believed is for the chain to say."""

    time: datetime
    """``genTime``."""
    signer: Certificate
    others: list[Certificate]
    """All certificates of the token, the signer's too."""


def check_token(request: bytes, response: bytes, stamped: bytes, of: str = "seal/manifest.json.sig") -> Token:
    """Everything that section 18 asks of a request and its response, but the chain to a root.

    ``stamped`` are the bytes whose time is told, those of the file ``of``. Raises only ``Fault``, whatever
    the bytes.
    """
    imprint = hashlib.sha256(stamped).digest()
    nonce = _request_nonce(request, imprint, of)
    fields = _fields(_granted(response), "CMS content")
    if fields.take().oid() != _SIGNED_DATA:
        raise TimestampFault("the token is not CMS SignedData")
    wrapped = fields.take().sequence(0xA0)
    fields.end()
    signed = wrapped.take().sequence()
    wrapped.end()
    signed.take().integer()
    signed.take().sequence(der.SET)
    info = _content(signed.take())
    held = signed.optional(0xA0)
    signed.optional(0xA1)  # revocation lists, which are judged by their authorities' clocks
    signers = signed.take().sequence(der.SET).rest()
    signed.end()
    if held is None:
        raise TimestampFault("the token holds no certificate")
    if len(signers) != 1:
        raise TimestampFault(f"the token has {len(signers)} signer infos, not one")
    if len(held.children) > MAX_CERTIFICATES:
        raise TimestampFault(f"the token holds more than {MAX_CERTIFICATES} certificates")
    encoded = [one.raw for one in held.children if one.tag == der.SEQUENCE]
    signer = _check_signer(signers[0], info, encoded)
    time = _check_info(info, imprint, nonce, of)
    check_purpose(signer)
    return Token(time=time, signer=signer, others=[load(one) for one in encoded])


def _fields(node: der.Node, what: str) -> der.Reader:
    if node.tag != der.SEQUENCE:
        raise TimestampFault(f"not a {what}")
    return node.sequence()


def _hash_name(node: der.Node, known: dict[str, str] = _HASHES) -> str:
    """The name of a hash in an algorithm identifier without parameters, or with NULL."""
    fields = node.sequence()
    name = fields.take().oid()
    nothing = fields.optional(der.NULL)
    fields.end()
    if name not in known or (nothing is not None and nothing.content):
        raise TimestampFault(f"hash {name} is not known here")
    return known[name]


def _check_imprint(node: der.Node, imprint: bytes, where: str, of: str) -> None:
    fields = node.sequence()
    name = _hash_name(fields.take())
    value = fields.take().octets()
    fields.end()
    if name != "sha256" or value != imprint:
        raise TimestampFault(f"the imprint of the {where} is not the SHA-256 of {of}")


def _request_nonce(request: bytes, imprint: bytes, of: str) -> int:
    fields = _fields(der.parse(request), "TimeStampReq")
    if fields.take().integer() != 1:
        raise TimestampFault("the request is not of version 1")
    _check_imprint(fields.take(), imprint, "request", of)
    fields.optional(der.OID)
    nonce = fields.optional(der.INTEGER)
    asks = fields.optional(der.BOOLEAN)
    fields.optional(0xA0)
    fields.end()
    if nonce is None:
        raise TimestampFault("the request has no nonce")
    if asks is None or not asks.boolean():
        raise TimestampFault("the request does not ask for the certificate")
    return nonce.integer()


def _granted(response: bytes) -> der.Node:
    """The token of a response that grants one."""
    fields = _fields(der.parse(response), "TimeStampResp")
    status = fields.take().sequence()
    number = status.take().integer()
    status.optional(der.SEQUENCE)
    status.optional(der.BITS)
    status.end()
    if number not in _GRANTED:
        raise TimestampFault(f"the response's status is {number}: no time stamp was granted")
    token = fields.take()
    fields.end()
    return token


def _content(node: der.Node) -> bytes:
    """The bytes of the TSTInfo."""
    fields = node.sequence()
    if fields.take().oid() != _TST_INFO:
        raise TimestampFault("the token is not over a TSTInfo")
    wrapped = fields.take().sequence(0xA0)
    fields.end()
    content = wrapped.take().octets()
    wrapped.end()
    return content


def _check_info(info: bytes, imprint: bytes, nonce: int, of: str) -> datetime:
    """The time of a TSTInfo with the request's imprint and nonce."""
    fields = _fields(der.parse(info), "TSTInfo")
    if fields.take().integer() != 1:
        raise TimestampFault("the TSTInfo is not of version 1")
    fields.take().oid()
    _check_imprint(fields.take(), imprint, "token", of)
    fields.take().integer()
    time = fields.take().time()
    fields.optional(der.SEQUENCE)  # the accuracy
    ordering = fields.optional(der.BOOLEAN)
    if ordering is not None:
        ordering.boolean()
    own = fields.optional(der.INTEGER)
    fields.optional(0xA0)  # the stamper's name
    extensions = fields.optional(0xA1)
    fields.end()
    if own is None or own.integer() != nonce:
        raise TimestampFault("the token does not have the request's nonce")
    for extension in extensions.children if extensions is not None else ():
        inside = extension.sequence()
        inside.take().oid()
        critical = inside.optional(der.BOOLEAN)
        if critical is not None and critical.boolean():
            raise TimestampFault("the TSTInfo has a critical extension, which is not known here")
    return time


def _check_signer(node: der.Node, info: bytes, encoded: list[bytes]) -> Certificate:
    """The certificate of the one who signed the TSTInfo, as its signer info says and proves."""
    fields = node.sequence()
    fields.take().integer()
    named = fields.take()
    digest = _hash_name(fields.take())
    attributes = fields.optional(0xA0)
    algorithm, signature = fields.take(), fields.take().octets()
    fields.optional(0xA1)
    fields.end()
    if attributes is None:
        raise TimestampFault("the signer info has no signed attributes")
    values = _attributes(attributes)
    if values.get(_CONTENT_TYPE, node).tag != der.OID or values[_CONTENT_TYPE].oid() != _TST_INFO:
        raise TimestampFault("the signed attributes do not have the content type id-ct-TSTInfo")
    told = values.get(_MESSAGE_DIGEST)
    if told is None or told.octets() != hashlib.new(digest, info).digest():
        raise TimestampFault("the signed attributes do not have the digest of the TSTInfo")
    certificate = next((one for one in encoded if _names(named, one)), None)
    if certificate is None:
        raise TimestampFault("the signer's certificate does not lie in the token")
    for kind in (_CERTIFICATE, _CERTIFICATE_V2):
        if kind in values:
            _check_named(values[kind], kind == _CERTIFICATE_V2, certificate)
    if not values.keys() & {_CERTIFICATE, _CERTIFICATE_V2}:
        raise TimestampFault("the signed attributes do not name the signer's certificate")
    signer = load(certificate)
    # What is signed is the encoding as a set, where the signer info has an implicit tag (RFC 5652, 5.4).
    _verify(signer, algorithm, digest, signature, bytes([der.SET]) + attributes.raw[1:])
    return signer


def _attributes(node: der.Node) -> dict[str, der.Node]:
    """The one value of each signed attribute, by its type."""
    values: dict[str, der.Node] = {}
    for attribute in node.children:
        fields = attribute.sequence()
        name, several = fields.take().oid(), fields.take().sequence(der.SET)
        fields.end()
        if name in values:
            raise TimestampFault(f"signed attribute {name} is there twice")
        values[name] = several.take()
        if name in (_CONTENT_TYPE, _MESSAGE_DIGEST, _CERTIFICATE, _CERTIFICATE_V2):
            several.end()
    return values


def _names(named: der.Node, encoded: bytes) -> bool:
    """Whether a signer identifier is a certificate's: by issuer and serial number, or by key identifier."""
    if named.tag == 0x80:
        return key_identifier(load(encoded)) == named.content
    fields = named.sequence()
    pair = fields.take().raw, fields.take().integer()
    fields.end()
    return pair == issuer_and_serial(encoded)


def _check_named(node: der.Node, second: bool, certificate: bytes) -> None:
    """The first certificate of a signing-certificate attribute (RFC 2634 and 5035) is the signer's."""
    fields = node.sequence()
    first = fields.take().sequence().take().sequence()
    fields.optional(der.SEQUENCE)
    fields.end()
    name = "sha256" if second else "sha1"
    if second and (algorithm := first.optional(der.SEQUENCE)) is not None:
        name = _hash_name(algorithm)
    value = first.take().octets()
    issuer = first.optional(der.SEQUENCE)
    first.end()
    if value != hashlib.new(name, certificate, usedforsecurity=False).digest():
        raise TimestampFault("the signing-certificate attribute names another certificate")
    if issuer is not None:
        pair = issuer.sequence()
        names, serial = pair.take().sequence().rest(), pair.take().integer()
        pair.end()
        directory = [one.children[0].raw for one in names if one.tag == 0xA4 and len(one.children) == 1]
        if len(directory) != len(names) or [(n, serial) for n in directory] != [
            issuer_and_serial(certificate)
        ]:
            raise TimestampFault("the signing-certificate attribute names another issuer or serial number")


def _verify(signer: Certificate, algorithm: der.Node, digest: str, signature: bytes, signed: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512

    fields = algorithm.sequence()
    name = fields.take().oid()
    nothing = fields.optional(der.NULL)
    fields.end()
    kind, hashed = ("rsa", digest) if name == _RSA else _SIGNATURES.get(name, ("", ""))
    if not kind or (nothing is not None and nothing.content):
        raise TimestampFault(f"signature algorithm {name} is not known here")
    function = {"sha256": SHA256(), "sha384": SHA384(), "sha512": SHA512()}[hashed]
    with hostile():
        public = signer.public_key()
        try:
            if kind == "rsa" and isinstance(public, rsa.RSAPublicKey):
                public.verify(signature, signed, padding.PKCS1v15(), function)
            elif kind == "ecdsa" and isinstance(public, ec.EllipticCurvePublicKey):
                public.verify(signature, signed, ec.ECDSA(function))
            else:
                raise TimestampFault("the signer's key is not of the kind of its signature")
        except InvalidSignature:
            raise TimestampFault("the token's signature does not verify") from None
