"""Time stamps: what openssl makes is verified, and every fault of section 18 is refused by its name."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from prereg.errors import EvidenceIncomplete, UsageError
from prereg.seal.der import NotDer
from prereg.seal.timestamp import BadTimestamp, check_request, verify_timestamp
from prereg.seal.timestamp_client import ask, new_request
from prereg.seal.timestamp_token import MAX_BYTES, parse_request, parse_response
from tests.unit.timestamp_fixture import NOW, STAMPING, Authority, integer, oid, seq, serve, tlv

SIGNATURE = b"-----BEGIN SSH SIGNATURE-----\nthese very bytes\n"
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(folder=tmp_path_factory.mktemp("tsa"))


def verify(request: bytes, response: bytes, authority: Authority, *, roots: bytes | None = None) -> datetime:
    return verify_timestamp(
        request, response, signature=SIGNATURE, roots=authority.roots if roots is None else roots
    )


@pytest.mark.parametrize("kind", ["rsa", "ec"])
@pytest.mark.parametrize("through", [False, True])
def test_what_openssl_stamps_is_verified_and_the_library_agrees(
    tmp_path: Path, kind: str, through: bool
) -> None:
    from rfc3161_client import VerifierBuilder, decode_timestamp_response

    authority = Authority(folder=tmp_path, kind=kind, through=through)
    request = new_request(SIGNATURE)
    with serve(authority.stamp) as url:
        response = ask(url, request)
    assert authority.requests == [request]
    at = verify(request, response, authority)
    assert abs(at - datetime.now(UTC)) < DAY
    try:
        decoded = decode_timestamp_response(response)
    except ValueError as error:
        # openssl does not sort the certificates, and the library wants them sorted: so ours is asked alone.
        assert "InvalidSetOrdering" in str(error)
        return
    verifier = VerifierBuilder().add_root_certificate(authority.root).nonce(parse_request(request).nonce or 0)
    assert verifier.build().verify_message(decoded, SIGNATURE)
    assert decoded.tst_info.gen_time == at


def test_a_request_has_a_nonce_of_its_own_and_asks_for_the_certificate() -> None:
    one, two = (parse_request(new_request(SIGNATURE)) for _ in range(2))
    assert one.nonce != two.nonce
    assert one.asks_for_certificate


def test_what_is_written_here_is_verified_too(authority: Authority) -> None:
    request = new_request(SIGNATURE)
    assert verify(request, authority.token(request), authority) == NOW
    assert verify(request, authority.token(request, status=1), authority) == NOW
    assert verify(request, authority.token(request, named_hash="sha1"), authority) == NOW
    with_fraction = authority.token(request, time=f"{NOW:%Y%m%d%H%M%S}.25Z")
    assert verify(request, with_fraction, authority) == NOW.replace(microsecond=250_000)


def extension(critical: bytes) -> bytes:
    return tlv(0xA1, seq(oid("1.2.3"), critical, tlv(4, b"x")))


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "other digest": ({"imprint": b"\1" * 32}, "is for other bytes than the request"),
    "no nonce": ({"nonce": None}, "has no nonce"),
    "other nonce": ({"nonce": 5}, "another nonce"),
    "rejection": ({"status": 2, "no_token": True}, r"was not granted \(rejection: said\)"),
    "waiting, with a token": ({"status": 3}, "was not granted"),
    "no token": ({"no_token": True}, "has no token"),
    "TSTInfo of version 2": ({"version": 2}, "has version 2"),
    "critical extension": ({"more": extension(tlv(1, b"\xff"))}, r"has a critical extension, 1\.2\.3"),
    "extension that is none": ({"more": tlv(0xA1, tlv(5))}, "is no time stamp: an extension"),
    "time without Z": ({"time": "20261130120000"}, "is not YYYYMMDD"),
    "time that does not exist": ({"time": "20261330120000Z"}, "does not exist"),
    "time with a zone": ({"time": "20261130120000+0100"}, "is not YYYYMMDD"),
    "time with trailing zeros": ({"time": "20261130120000.50Z"}, "is not YYYYMMDD"),
    "no content type": ({"without": (0,)}, "do not say that the content is a TSTInfo"),
    "another content type": ({"content_type": "1.2.840.113549.1.7.1"}, "do not say that the content"),
    "no message digest": ({"without": (1,)}, "do not hold the digest"),
    "another message digest": ({"digest": b"\0" * 32}, "do not hold the digest"),
    "no signing certificate": ({"without": (2,)}, "has no signing-certificate attribute"),
    "another certificate is named": ({"named": b"\0" * 32}, "does not name the signer's certificate"),
    "signed with SHA-1": ({"hash": "sha1"}, "is hashed with 1.3.14.3.2.26"),
    "another signature": ({"value": b"\x30\x06\x02\x01\x01\x02\x01\x01"}, "signature is not valid"),
    "two signers": ({"signers": 2}, "has 2 signer infos"),
    "no signer": ({"signers": 0}, "has 0 signer infos"),
    "no certificates": ({"no_certificates": True}, "does not hold its signer's certificate"),
    "before the certificate": ({"time": f"{NOW - 2 * DAY:%Y%m%d%H%M%S}Z"}, "was not valid at"),
    "expired at genTime": ({"time": f"{NOW + 31 * DAY:%Y%m%d%H%M%S}Z"}, "was not valid at"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_token_is_refused(name: str, authority: Authority) -> None:
    faults, what = FAULTS[name]
    request = new_request(SIGNATURE)
    with pytest.raises(BadTimestamp, match=what) as caught:
        verify(request, authority.token(request, **faults), authority)
    assert caught.value.where == "seal/timestamp.tsr"
    assert caught.value.exit_code == 1


def test_an_extension_that_is_not_critical_is_passed_over(authority: Authority) -> None:
    request = new_request(SIGNATURE)
    for critical in (b"", tlv(1, b"\0")):
        assert verify(request, authority.token(request, more=extension(critical)), authority) == NOW


def test_a_request_or_response_that_is_too_long_is_refused(authority: Authority) -> None:
    # Some bytes after an extension's value make up the size, which is judged before anything is read.
    request = altered_request(more=tlv(0xA0, b"\0" * (MAX_BYTES - 105)))
    request = altered_request(more=tlv(0xA0, b"\0" * (MAX_BYTES - 105 + MAX_BYTES - len(request))))
    assert len(request) == MAX_BYTES
    check_request(request, SIGNATURE)
    longer = altered_request(more=tlv(0xA0, b"\0" * MAX_BYTES))
    with pytest.raises(BadTimestamp, match="more than 65536") as caught:
        check_request(longer, SIGNATURE)
    assert caught.value.where == "seal/timestamp.tsq"
    request = new_request(SIGNATURE)
    response = authority.token(request, more=tlv(0xA1, seq(oid("1.2.3"), tlv(4, b"x" * MAX_BYTES))))
    with pytest.raises(BadTimestamp, match="more than 65536") as caught:
        verify(request, response, authority)
    assert caught.value.where == "seal/timestamp.tsr"


@pytest.mark.parametrize(
    ("through", "lengths", "good"),
    [
        (False, (0, None), True),
        (True, (0, None), False),
        (True, (1, None), True),
        (True, (1, 0), True),
        (True, (None, 0), True),
    ],
)
def test_an_authority_counts_within_its_path_length(
    tmp_path: Path, through: bool, lengths: tuple[int | None, int | None], good: bool
) -> None:
    authority = Authority(folder=tmp_path, through=through, path_lengths=lengths)
    request = new_request(SIGNATURE)
    response = authority.token(request)
    if good:
        assert verify(request, response, authority) == NOW
        return
    with pytest.raises(BadTimestamp, match="one allows 0 authorities below it, and there are 1"):
        verify(request, response, authority)


SERVER = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
BOTH = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING, ExtendedKeyUsageOID.SERVER_AUTH])
CERTIFICATES: dict[str, tuple[dict[str, Any], str]] = {
    "not critical": ({"critical": False}, "does not say critically"),
    "no usage": ({"usage": None}, "is not for time stamping"),
    "another usage": ({"usage": SERVER}, "is not for time stamping alone"),
    "two usages": ({"usage": BOTH}, "is not for time stamping alone"),
    "expired": ({"ends": NOW - timedelta(seconds=1)}, "signer's certificate was not valid"),
    "expired root": ({"root_ends": NOW - timedelta(seconds=1)}, "one was not valid at"),
    "the middle is no authority": ({"through": True, "middle_ca": False}, "no chain of certificates"),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_that_may_not_stamp_is_refused(name: str, tmp_path: Path) -> None:
    options, what = CERTIFICATES[name]
    authority = Authority(folder=tmp_path, **options)
    request = new_request(SIGNATURE)
    with pytest.raises(BadTimestamp, match=what):
        verify(request, authority.token(request), authority)


def test_the_last_second_of_a_certificate_counts(tmp_path: Path) -> None:
    request = new_request(SIGNATURE)
    authority = Authority(folder=tmp_path, ends=NOW)
    assert verify(request, authority.token(request), authority) == NOW
    with pytest.raises(BadTimestamp, match="was not valid"):
        verify(request, authority.token(request, time=f"{NOW:%Y%m%d%H%M%S}.5Z"), authority)


def test_an_untrusted_root_is_refused(authority: Authority, tmp_path: Path) -> None:
    request = new_request(SIGNATURE)
    response = authority.token(request)
    other = Authority(folder=tmp_path)  # its root has the same name and another key
    with pytest.raises(BadTimestamp, match="no chain of certificates"):
        verify(request, response, authority, roots=other.roots)
    assert verify(request, response, authority, roots=other.roots + authority.roots) == NOW
    for bad in (b"", b"no certificate"):
        with pytest.raises(BadTimestamp, match="holds no certificates"):
            verify(request, response, authority, roots=bad)


def test_ten_years_on_everything_has_expired_and_the_stamp_still_verifies(tmp_path: Path) -> None:
    long_ago = NOW - 3650 * DAY
    authority = Authority(folder=tmp_path, begins=long_ago - DAY, ends=long_ago + DAY)
    # The root began with the certificate and is over too.
    from tests.unit.timestamp_fixture import certificate, new_key

    root_key = new_key("rsa")
    ends = {"begins": long_ago - DAY, "ends": long_ago + DAY}
    authority.root = certificate("root", root_key, "root", root_key, ca=True, **ends)
    authority.leaf = certificate("stamps", authority.key, "root", root_key, usage=STAMPING, **ends)
    request = new_request(SIGNATURE)
    response = authority.token(request, time=f"{long_ago:%Y%m%d%H%M%S}Z")
    assert verify(request, response, authority) == long_ago


def test_every_cut_is_refused(authority: Authority) -> None:
    request = new_request(SIGNATURE)
    response = authority.token(request)
    for end in range(0, len(response), 7):
        with pytest.raises(BadTimestamp, match="is no time stamp"):
            verify(request, response[:end], authority)
    with pytest.raises(BadTimestamp, match="bytes after its end"):
        verify(request, response + b"\0", authority)


def test_every_bit_that_is_signed_counts(authority: Authority) -> None:
    """Whatever byte of every third is changed, the token is refused, or says the very same as before."""
    request = new_request(SIGNATURE)
    response = authority.token(request)
    before = parse_response(response).token
    for i in range(0, len(response), 3):
        altered = response[:i] + bytes([response[i] ^ 1]) + response[i + 1 :]
        try:
            assert verify(request, altered, authority) == NOW, i
        except BadTimestamp:
            continue
        token = parse_response(altered).token
        assert token is not None and before is not None
        assert token.content == before.content


def altered_request(**changes: bytes) -> bytes:
    asked = parse_request(new_request(SIGNATURE))
    fields = {
        "version": integer(1),
        "imprint": seq(seq(oid("2.16.840.1.101.3.4.2.1"), tlv(5)), tlv(4, asked.imprint.digest)),
        "nonce": integer(99),
        "asks": tlv(1, b"\xff"),
        "more": b"",
    } | changes
    return seq(*fields.values())


REQUESTS = {
    "version 2": ({"version": integer(2)}, "has version 2"),
    "SHA-1": ({"imprint": seq(seq(oid("1.3.14.3.2.26")), tlv(4, b"x" * 20))}, "for other bytes"),
    "other bytes": (
        {"imprint": seq(seq(oid("2.16.840.1.101.3.4.2.1")), tlv(4, b"x" * 32))},
        "for other bytes",
    ),
    "no nonce": ({"nonce": b""}, "has no nonce"),
    "no certificate asked for": ({"asks": b""}, "does not ask for the certificate"),
    "certReq false": ({"asks": tlv(1, b"\0")}, "does not ask for the certificate"),
    "more": ({"more": tlv(5)}, "is no TimeStampReq"),
    "a long integer": ({"nonce": tlv(2, b"\0\1")}, "shortest form"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_is_not_as_it_should_be_is_refused(name: str) -> None:
    check_request(altered_request(), SIGNATURE)
    changes, what = REQUESTS[name]
    with pytest.raises(BadTimestamp, match=what) as caught:
        check_request(altered_request(**changes), SIGNATURE)
    assert caught.value.where == "seal/timestamp.tsq"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for parse in (parse_request, parse_response):
        with pytest.raises(NotDer):
            parse(data)
            raise NotDer


ANSWERS: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "another content type": ({"kind": "text/html"}, b"<p>", "answered 200 with 'text/html'"),
    "an error": ({"status": 503}, b"", "answered 503"),
    "a redirection": ({"status": 302}, b"", "answered 302"),
    "a huge answer": ({}, b"\0" * (MAX_BYTES + 1), f"sends more than {MAX_BYTES} bytes"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_no_reply_is_refused(name: str) -> None:
    options, body, what = ANSWERS[name]
    with serve(lambda _request: body, **options) as url, pytest.raises(EvidenceIncomplete, match=what):
        ask(url, b"request")


def test_an_authority_that_hangs_is_left_in_time() -> None:
    enough = threading.Event()

    def hang(_request: bytes) -> bytes:
        enough.wait(20)
        return b""

    with serve(hang) as url:
        with pytest.raises(EvidenceIncomplete, match=r"did not answer in time|timed out"):
            ask(url, b"request", timeout=0.3)
        enough.set()


def drip(listening: socket.socket, enough: threading.Event, over: threading.Event) -> None:
    """Answer one request with a header that never ends, a byte at a time, for a minute at most."""
    connection, _ = listening.accept()
    with connection, contextlib.suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        for _ in range(600):
            if enough.wait(0.1):
                break
            connection.sendall(b"x")
    over.set()


def test_an_authority_that_never_ends_its_header_is_left_in_time() -> None:
    enough, over = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening, enough, over), daemon=True)
        thread.start()
        try:
            with pytest.raises(EvidenceIncomplete, match="did not answer in time"):
                ask(f"http://127.0.0.1:{listening.getsockname()[1]}/", b"request", timeout=1)
            assert not over.is_set()  # it was left while it still answered
        finally:
            enough.set()
            thread.join(20)


def test_an_authority_that_is_absent_is_named() -> None:
    with serve(lambda _request: b"") as url:
        pass  # it was there, so that the port is free now
    with pytest.raises(EvidenceIncomplete, match="cannot be reached") as caught:
        ask(url, b"request", timeout=5)
    assert caught.value.where == url


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/y",
        "file:///etc/passwd",
        "tsa.example.org",
        "http://",
        "http://a:b@x/",
        "http://x /",
        "http://[x",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="the authority's address"):
        ask(url, b"request")


def test_a_signed_attribute_that_stands_twice_is_refused(authority: Authority) -> None:
    request = new_request(SIGNATURE)
    token = parse_response(authority.token(request)).token
    assert token is not None
    signer = token.signers[0]
    twice = dataclasses.replace(signer, attributes=signer.attributes * 2)
    with pytest.raises(NotDer, match="exactly one value"):
        twice.attribute("1.2.840.113549.1.9.3")
