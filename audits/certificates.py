"""Certificates of section 18: the time stamper's own, and its chain to a sealed root at the token's time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from audits import der
from audits.__main__ import is_shortage
from audits.fault import Fault

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MAX_CERTIFICATES = 32
"""The most certificates of a token."""
MAX_CHAIN = 16
"""The most issuers between the signer and a root, the root included."""
_TIME_STAMPING = "1.3.6.1.5.5.7.3.8"


class CertificateFault(Fault):
    """A certificate that cannot be used, or may not do what it is used for."""


@contextmanager
def hostile() -> Iterator[None]:
    """Turn whatever the library says of hostile bytes into a fault.

    A certificate's fields are read lazily, and its library raises some ten kinds of exception for bad ones.
    What it only warns of (a serial number below 1, a name of another length than its kind has) is no fault
    by section 18, and would stand between the lines of the auditor's own report.
    """
    from cryptography.utils import CryptographyDeprecationWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CryptographyDeprecationWarning)
            warnings.filterwarnings("ignore", "Attribute's length must be ", UserWarning)
            yield
    except Fault:
        raise
    except Exception as error:
        if is_shortage(error):
            raise
        raise CertificateFault(f"a certificate cannot be used: {error or type(error).__name__}") from None


def load(encoded: bytes) -> Certificate:
    """One certificate."""
    from cryptography import x509

    with hostile():
        return x509.load_der_x509_certificate(encoded)


def load_roots(pem: bytes, file: str) -> list[Certificate]:
    """The certificates of the authorities that are believed."""
    from cryptography import x509

    try:
        with hostile():
            return x509.load_pem_x509_certificates(pem)
    except Fault as fault:
        raise fault.at(file) from None


def issuer_and_serial(encoded: bytes) -> tuple[bytes, int]:
    """The encoded name of a certificate's issuer, and its serial number."""
    fields = der.parse(encoded).sequence().take().sequence()
    fields.optional(0xA0)
    serial = fields.take().integer()
    fields.take()
    return fields.take().raw, serial


def key_identifier(certificate: Certificate) -> bytes | None:
    """The subject key identifier, where there is one."""
    from cryptography import x509

    with hostile():
        try:
            return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
        except x509.ExtensionNotFound:
            return None


def check_purpose(certificate: Certificate) -> None:
    """A time stamper's certificate is for time stamps and nothing else, and says so critically."""
    from cryptography import x509

    with hostile():
        try:
            usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        except x509.ExtensionNotFound:
            raise CertificateFault("the signer's certificate has no extended key usage") from None
        if [one.dotted_string for one in usage.value] != [_TIME_STAMPING]:
            raise CertificateFault("the signer's certificate is not for timeStamping alone")
        if not usage.critical:
            raise CertificateFault("the extended key usage of the signer's certificate is not critical")


def _valid(certificate: Certificate, at: datetime) -> bool:
    return certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc


def _may_issue(certificate: Certificate, below: int) -> bool:
    """Whether a certificate is an authority's, with at most so many authorities below it."""
    from cryptography import x509

    try:
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    return basic.ca and (basic.path_length is None or below <= basic.path_length)


def _issued(certificate: Certificate, issuer: Certificate) -> bool:
    if certificate.issuer != issuer.subject:
        return False
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception as error:
        if is_shortage(error):
            raise
        return False  # another key of the same name, or a kind of key or signature that is not known
    return True


def check_chain(
    signer: Certificate, others: list[Certificate], roots: list[Certificate], at: datetime
) -> None:
    """Raise unless a chain through ``others`` leads from the signer to a root, all of it valid at a time.

    Breadth first, so that each authority is met with the fewest others below it.
    """
    with hostile():
        if not _valid(signer, at):
            raise CertificateFault(f"the signer's certificate is not valid at {at.isoformat()}")
        reached, seen = [signer], {signer}
        for below in range(MAX_CHAIN):
            following = []
            for certificate in reached:
                for issuer in [*roots, *others]:
                    good = _may_issue(issuer, below) and _valid(issuer, at) and _issued(certificate, issuer)
                    if good and issuer in roots:
                        return
                    if good and issuer not in seen:
                        seen.add(issuer)
                        following.append(issuer)
            reached = following
    what = "no chain of certificate authorities leads from the signer to a sealed root, all of it valid at "
    raise CertificateFault(what + at.isoformat())
