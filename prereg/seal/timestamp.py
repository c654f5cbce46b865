"""Whether a time stamp is verified (docs/formats.md section 18). Nothing here looks at a clock.

Every certificate is judged at the token's own time, so that a stamp verifies offline and ten years on. The
library `rfc3161-client` makes requests. It is not asked whether a token is good, since its rules are others:
it refuses a grant with modifications and the unsorted sets that `openssl ts` writes, and it does not look at
the signing-certificate attribute.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NoReturn

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import HashAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID

from prereg.errors import VerificationFailed
from prereg.seal.der import OCTETS, NotDer
from prereg.seal.timestamp_token import (
    CONTENT_TYPE,
    MAX_BYTES,
    MESSAGE_DIGEST,
    SHA1,
    SHA256,
    SIGNING_CERTIFICATE,
    SIGNING_CERTIFICATE_V2,
    TST_INFO,
    SignerInfo,
    Token,
    certificate_hashes,
    parse_request,
    parse_response,
)

REQUEST, RESPONSE = "seal/timestamp.tsq", "seal/timestamp.tsr"
SIGNATURE = "seal/manifest.json.sig"
"""What the stamp of a seal is of."""
State = Literal["none", "owed", "attached", "verified"]
MAX_CERTIFICATES = 32
"""Certificates of a token that are looked at; real ones hold two to four."""

_HASHES: dict[str, type[HashAlgorithm]] = {
    SHA256: hashes.SHA256,
    "2.16.840.1.101.3.4.2.2": hashes.SHA384,
    "2.16.840.1.101.3.4.2.3": hashes.SHA512,
}
_UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What `cryptography` raises for bytes that are no certificate, key or signature that it knows."""
_RSA_PLAIN = "1.2.840.113549.1.1.1"
_RSA: dict[str, type[HashAlgorithm]] = {
    "1.2.840.113549.1.1.11": hashes.SHA256,
    "1.2.840.113549.1.1.12": hashes.SHA384,
    "1.2.840.113549.1.1.13": hashes.SHA512,
}
_ECDSA: dict[str, type[HashAlgorithm]] = {
    "1.2.840.10045.4.3.2": hashes.SHA256,
    "1.2.840.10045.4.3.3": hashes.SHA384,
    "1.2.840.10045.4.3.4": hashes.SHA512,
}
_STATUS = {2: "rejection", 3: "waiting", 4: "revocation warning", 5: "revocation notification"}


class BadTimestamp(VerificationFailed):
    """A time stamp is not one, or does not attest this signature, or not by an authority that is believed."""


def check_request(request: bytes, signature: bytes, *, of: str = SIGNATURE) -> None:
    """Check that `request` asks for a stamp of `signature` as section 18 wants it. Raises BadTimestamp."""
    _check_size(request, REQUEST)
    try:
        asked = parse_request(request)
    except NotDer as error:
        _bad(f"is no TimeStampReq: {error}", REQUEST)
    if asked.version != 1:
        _bad(f"has version {asked.version}, not 1", REQUEST)
    if asked.imprint.algorithm != SHA256 or asked.imprint.digest != hashlib.sha256(signature).digest():
        _bad(f"is for other bytes than those of {of}", REQUEST)
    if asked.nonce is None:
        _bad("has no nonce", REQUEST)
    if not asked.asks_for_certificate:
        _bad("does not ask for the certificate", REQUEST)


def verify_timestamp(
    request: bytes, response: bytes, *, signature: bytes, roots: bytes, of: str = SIGNATURE
) -> datetime:
    """The time at which `signature` existed, by an authority of `roots` (PEM certificates).

    `of` is where the signature lies, and the two files beside it. Raises BadTimestamp for anything that
    section 18 does not call verified.
    """
    try:
        return _verified(request, response, signature, roots, of)
    except BadTimestamp as error:
        place = (error.where or "").replace("seal/", of.rpartition("/")[0] + "/", 1)
        raise BadTimestamp(error.what, where=place) from None


def _verified(request: bytes, response: bytes, signature: bytes, roots: bytes, of: str) -> datetime:
    check_request(request, signature, of=of)
    _check_size(response, RESPONSE)
    asked = parse_request(request)
    try:
        found = parse_response(response)
        if found.status not in (0, 1):
            said = f": {found.said}" if found.said else ""
            _bad(f"was not granted ({_STATUS.get(found.status, found.status)}{said})", RESPONSE)
        if found.token is None:
            _bad("has no token", RESPONSE)
        _check_token(found.token, load_roots(roots, where="roots"))
    except NotDer as error:
        _bad(f"is no time stamp: {error}", RESPONSE)
    info = found.token.info
    if info.version != 1:
        _bad(f"its TSTInfo has version {info.version}, not 1", RESPONSE)
    if info.critical:
        _bad(f"its TSTInfo has a critical extension, {info.critical[0]}", RESPONSE)
    if info.imprint != asked.imprint:
        _bad("is for other bytes than the request", RESPONSE)
    if info.nonce != asked.nonce:
        _bad("has another nonce than the request" if info.nonce is not None else "has no nonce", RESPONSE)
    return info.time


def _check_size(data: bytes, where: str) -> None:
    if len(data) > MAX_BYTES:
        _bad(f"has {len(data)} bytes, more than {MAX_BYTES}", where)


def load_roots(data: bytes, *, where: str) -> list[x509.Certificate]:
    """The PEM certificates of the authorities that are believed. Raises BadTimestamp if there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return x509.load_pem_x509_certificates(data)
    except ValueError:
        _bad("holds no certificates in PEM", where)


def _check_token(token: Token, roots: Sequence[x509.Certificate]) -> None:
    if len(token.signers) != 1:
        _bad(f"has {len(token.signers)} signer infos, not one", RESPONSE)
    signer = token.signers[0]
    if len(token.certificates) > MAX_CERTIFICATES:
        _bad(f"holds {len(token.certificates)} certificates", RESPONSE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pool = [x509.load_der_x509_certificate(c) for c in token.certificates]
            leaf = _leaf(signer, pool)
            _check_attributes(token, signer, leaf)
            _check_signature(signer, leaf)
            _check_usage(leaf)
            _check_chain(leaf, pool, roots, token.info.time)
    except InvalidSignature:
        _bad("its signature is not valid", RESPONSE)
    except _UNREADABLE as error:
        _bad(f"a certificate or a signature in it cannot be read: {str(error)[:200]}", RESPONSE)


def _leaf(signer: SignerInfo, pool: Sequence[x509.Certificate]) -> x509.Certificate:
    for certificate in pool:
        if signer.key_id is not None:
            if _key_id(certificate) == signer.key_id:
                return certificate
        elif (
            certificate.serial_number == signer.serial and certificate.issuer.public_bytes() == signer.issuer
        ):
            return certificate
    _bad("does not hold its signer's certificate", RESPONSE)


def _key_id(certificate: x509.Certificate) -> bytes | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def _check_attributes(token: Token, signer: SignerInfo, leaf: x509.Certificate) -> None:
    """The signed attributes bind the content, its type, and the certificate."""
    kind = signer.attribute(CONTENT_TYPE)
    if kind is None or kind.oid("the content type") != TST_INFO:
        _bad("its signed attributes do not say that the content is a TSTInfo", RESPONSE)
    if signer.digest_algorithm not in _HASHES:
        _bad(f"is hashed with {signer.digest_algorithm}; SHA-256, SHA-384 and SHA-512 are known", RESPONSE)
    digest = signer.attribute(MESSAGE_DIGEST)
    if digest is None or digest.expect(OCTETS, "the message digest").content != _digest(
        _HASHES[signer.digest_algorithm](), token.content
    ):
        _bad("its signed attributes do not hold the digest of the TSTInfo", RESPONSE)
    named = 0
    for name, v2 in ((SIGNING_CERTIFICATE, False), (SIGNING_CERTIFICATE_V2, True)):
        attribute = signer.attribute(name)
        if attribute is None:
            continue
        ids = certificate_hashes(attribute, v2=v2)
        known: dict[str, type[HashAlgorithm]] = _HASHES if v2 else {SHA1: hashes.SHA1}
        if not ids or ids[0][0] not in known or leaf.fingerprint(known[ids[0][0]]()) != ids[0][1]:
            _bad("its signing-certificate attribute does not name the signer's certificate", RESPONSE)
        named += 1
    if not named:
        _bad("has no signing-certificate attribute", RESPONSE)


def _check_signature(signer: SignerInfo, leaf: x509.Certificate) -> None:
    key, name = leaf.public_key(), signer.signature_algorithm
    expected = _HASHES[signer.digest_algorithm]
    if isinstance(key, rsa.RSAPublicKey) and (name == _RSA_PLAIN or _RSA.get(name) is expected):
        key.verify(signer.signature, signer.signed, padding.PKCS1v15(), expected())
    elif isinstance(key, ec.EllipticCurvePublicKey) and _ECDSA.get(name) is expected:
        key.verify(signer.signature, signer.signed, ec.ECDSA(expected()))
    else:
        _bad(f"is signed with {name} by a key of another kind or with another hash than it says", RESPONSE)


def _check_usage(leaf: x509.Certificate) -> None:
    try:
        usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        _bad("its signer's certificate is not for time stamping", RESPONSE)
    if list(usage.value) != [ExtendedKeyUsageOID.TIME_STAMPING]:
        _bad("its signer's certificate is not for time stamping alone", RESPONSE)
    if not usage.critical:
        _bad("its signer's certificate does not say critically that it is for time stamping", RESPONSE)


def _check_chain(
    leaf: x509.Certificate, pool: Sequence[x509.Certificate], roots: Sequence[x509.Certificate], at: datetime
) -> None:
    """A chain of certificates of the token leads from `leaf` to a root, each of them valid at `at`."""
    if not _valid_at(leaf, at):
        _bad(f"its signer's certificate was not valid at {at.isoformat()}", RESPONSE)
    # By the number of authorities below, fewest first, so that a path length is judged on the best chain, and
    # each certificate is looked at once, so that a token cannot make this long.
    reached, waiting = [leaf], deque([(leaf, 0)])
    faults: set[str] = set()
    while waiting:
        certificate, below = waiting.popleft()
        for root in roots:
            if _issued(certificate, root):
                fault = _fault(root, below, at)
                if fault is None:
                    return
                faults.add(fault)
        for issuer in pool:
            if issuer in reached or not _issued(certificate, issuer):
                continue
            reached.append(issuer)
            fault = _fault(issuer, below, at)
            if fault is None:
                waiting.append((issuer, below + 1))
            else:
                faults.add(fault)
    why = f": {'; '.join(sorted(faults))}" if faults else ""
    _bad(f"no chain of certificates leads from its signer to one of the roots{why}", RESPONSE)


def _fault(issuer: x509.Certificate, below: int, at: datetime) -> str | None:
    """Why an authority may not stand in a chain with `below` authorities between it and the signer."""
    if not _valid_at(issuer, at):
        return f"one was not valid at {at.isoformat()}"
    longest = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
    if longest is not None and below > longest:
        return f"one allows {longest} authorities below it, and there are {below}"
    return None


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether `issuer`, a certificate authority, signed `certificate`."""
    try:
        if not issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        certificate.verify_directly_issued_by(issuer)
    except (x509.ExtensionNotFound, InvalidSignature, *_UNREADABLE):
        return False
    return True


def _valid_at(certificate: x509.Certificate, at: datetime) -> bool:
    return certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc


def _digest(algorithm: HashAlgorithm, data: bytes) -> bytes:
    return hashlib.new(algorithm.name, data).digest()


def _bad(what: str, where: str) -> NoReturn:
    raise BadTimestamp(what, where=where)
