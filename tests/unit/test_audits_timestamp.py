"""Time stamps: real tokens of openssl, hand-made ones, and every fault of section 18."""

from __future__ import annotations

import warnings
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from audits_stamps import (
    MIDDAY,
    STAMPING,
    Authority,
    Stamp,
    authority,
    by_openssl,
    integer,
    oid,
    request,
    seq,
    stamper,
    tlv,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from audits.certificates import check_chain, hostile, load, load_roots
from audits.der import DerFault, parse
from audits.fault import Fault
from audits.timestamp import check_token

DATA = b"the bytes of seal/manifest.json.sig"
ROOT = authority("root")
MIDDLE = authority("middle", ROOT)
SIGNER = stamper(MIDDLE)
GOOD = Stamp(data=DATA, signer=SIGNER, chain=(MIDDLE,))
REPLY = GOOD.response()


def verify(query: bytes, reply: bytes, *roots: Authority) -> datetime:
    token = check_token(query, reply, DATA)
    check_chain(
        token.signer, token.others, load_roots(b"".join(r.pem for r in roots), "roots.pem"), token.time
    )
    return token.time


def refused(query: bytes, reply: bytes, *roots: Authority) -> str:
    with pytest.raises(Fault) as caught:
        verify(query, reply, *(roots or (ROOT,)))
    return str(caught.value)


@pytest.mark.parametrize("digest", ["sha256", "sha384", "sha512"])
@pytest.mark.parametrize("kind", ["rsa", "ec"])
@pytest.mark.parametrize("ess", ["sha1", "sha256"])
def test_a_token_of_openssl(tmp_path: Path, kind: str, digest: str, ess: str) -> None:
    now = datetime.now(UTC)
    life = {"first": now - timedelta(days=1), "last": now + timedelta(days=1)}
    root = authority("real-root", kind=kind, **life)
    middle = authority("real-middle", root, kind=kind, **life)
    signer = stamper(middle, "real-stamper", kind=kind, **life)
    query, reply = by_openssl(tmp_path, DATA, signer, (middle,), digest, ess)
    before = datetime.now(UTC)
    assert abs(verify(query, reply, root) - before) < timedelta(seconds=60)
    assert "no chain" in refused(query, reply, authority("stranger", **life))
    with pytest.raises(Fault, match="is not the SHA-256"):
        check_token(query, reply, DATA + b"\n")
    other, _ = by_openssl(tmp_path / "other", DATA, signer, (middle,), digest, ess)
    assert "nonce" in refused(other, reply, root)


VARIANTS = {
    "as it is": GOOD,
    "granted with modifications": GOOD.with_(status=1),
    "ESSCertID": GOOD.with_(ess=1),
    "with issuer and serial number": GOOD.with_(issuer_serial=True),
    "signer by key identifier": GOOD.with_(by_identifier=True),
    "RSA": GOOD.with_(signer=stamper(MIDDLE, "by-rsa", kind="rsa")),
    "SHA-512": GOOD.with_(digest="sha512"),
    "issued by a root": GOOD.with_(signer=stamper(ROOT, "direct"), chain=()),
    "with the root in the token": GOOD.with_(chain=(ROOT, MIDDLE)),
    "a middle that may have none below": GOOD.with_(
        signer=stamper(authority("last", ROOT, path=0)), chain=(authority("last", ROOT, path=0),)
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_token_that_is_verified(name: str) -> None:
    assert verify(request(DATA), VARIANTS[name].response(), ROOT) == MIDDAY


def test_a_root_may_be_an_intermediate_authority_and_a_time_may_have_a_fraction() -> None:
    time = MIDDAY + timedelta(microseconds=120_000)
    assert verify(request(DATA), GOOD.with_(chain=(), time=time).response(), MIDDLE) == time


def _signer(**options: object) -> Stamp:
    return GOOD.with_(signer=stamper(MIDDLE, "-".join(map(str, options)), **options))


def _chain(middle: Authority) -> Stamp:
    return GOOD.with_(signer=stamper(middle), chain=(middle,))


_EARLY, _DAY = MIDDAY - timedelta(days=100), timedelta(days=1)
_NARROW = authority("narrow", authority("narrow-root", path=0))
CRITICAL = tlv(0xA1, seq(oid("1.2.3"), tlv(0x01, b"\xff"), tlv(0x04, b"")))
FAULTS: dict[str, tuple[Stamp, str]] = {
    "rejected": (GOOD.with_(status=2), "status is 2"),
    "of other bytes": (GOOD.with_(data=DATA + b"."), "imprint of the token"),
    "an imprint by another hash": (GOOD.with_(imprint="sha512"), "imprint of the token"),
    "another nonce": (GOOD.with_(nonce=5), "nonce"),
    "no nonce": (GOOD.with_(nonce=None), "nonce"),
    "TSTInfo of version 2": (GOOD.with_(version=2), "version 1"),
    "a critical extension": (GOOD.with_(extensions=CRITICAL), "critical extension"),
    "SHA-1": (GOOD.with_(digest="sha1"), "not known"),
    "two signer infos": (GOOD.with_(infos=2), "2 signer infos"),
    "no signer info": (GOOD.with_(infos=0), "0 signer infos"),
    "no certificates": (GOOD.with_(held=False), "no certificate"),
    "another signer's certificate": (
        GOOD.with_(attributes=lambda parts: parts, named=MIDDLE.der), "names another certificate",
    ),
    "no signing-certificate attribute": (GOOD.with_(ess=0), "do not name the signer's certificate"),
    "another content type": (GOOD.with_(content_type="1.2.840.113549.1.7.1"), "content type"),
    "no content type": (GOOD.with_(attributes=lambda parts: parts[1:]), "content type"),
    "another TSTInfo signed": (GOOD.with_(signed_info=b"another"), "digest of the TSTInfo"),
    "an attribute twice": (GOOD.with_(attributes=lambda parts: [*parts, parts[0]]), "twice"),
    "EKU not critical": (_signer(critical=False), "not critical"),
    "no EKU": (_signer(usage=None), "no extended key usage"),
    "another EKU": (_signer(usage=[ExtendedKeyUsageOID.SERVER_AUTH]), "timeStamping alone"),
    "another EKU beside": (_signer(usage=[STAMPING, ExtendedKeyUsageOID.SERVER_AUTH]), "timeStamping alone"),
    "signer expired": (_signer(last=MIDDAY - _DAY), "signer's certificate is not valid"),
    "signer not yet valid": (_signer(first=MIDDAY + _DAY), "signer's certificate is not valid"),
    "intermediate expired": (_chain(authority("m1", ROOT, last=MIDDAY - _DAY)), "no chain"),
    "intermediate that is no authority": (_chain(authority("m2", ROOT, ca=False)), "no chain"),
    "intermediate without constraints": (_chain(authority("m3", ROOT, ca=None)), "no chain"),
    "intermediate not there": (GOOD.with_(chain=()), "no chain"),
    "intermediate of a stranger": (_chain(authority("m4", authority("stranger"))), "no chain"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_token_that_is_not_verified(name: str) -> None:
    stamp, says = FAULTS[name]
    assert says in refused(request(DATA), stamp.response())


@pytest.mark.parametrize(
    ("root", "says"),
    [
        (authority("root", last=MIDDAY - _DAY), "no chain"),
        (authority("root", ca=False), "no chain"),
        (SIGNER, "no chain"),
    ],
)
def test_a_root_that_is_not_good_enough(root: Authority, says: str) -> None:
    assert says in refused(request(DATA), GOOD.response(), root)


def test_an_authority_of_the_same_name_with_another_key() -> None:
    impostor = authority("root", kind="rsa")
    assert "no chain" in refused(request(DATA), GOOD.response(), impostor)


def test_more_authorities_than_a_root_allows_below_it() -> None:
    root = authority("short-root", path=0)
    middle = authority("short-middle", root)
    stamp = GOOD.with_(signer=stamper(middle), chain=(middle,))
    assert "no chain" in refused(request(DATA), stamp.response(), root)
    direct = GOOD.with_(signer=stamper(root), chain=())
    assert verify(request(DATA), direct.response(), root) == MIDDAY


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (request(DATA, nonce=None), "no nonce"),
        (request(DATA, asks=False), "ask for the certificate"),
        (request(DATA, version=2), "version 1"),
        (request(DATA + b"."), "imprint of the request"),
        (request(DATA, name="sha512"), "imprint of the request"),
        (request(DATA) + b"\x00", "after the end"),
        (b"", "cut short"),
        (integer(5), "not a TimeStampReq"),
    ],
)
def test_a_request_that_does_not_ask_so(query: bytes, says: str) -> None:
    assert says in refused(query, GOOD.response())


def test_roots_that_are_none() -> None:
    for pem in (b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff"):
        with pytest.raises(Fault, match=r"roots\.pem"):
            load_roots(pem, "roots.pem")


def test_a_token_cut_short_at_every_byte_or_with_one_more() -> None:
    query, reply = request(DATA), GOOD.response()
    for end in range(len(reply)):
        refused(query, reply[:end])
    for end in range(len(query)):
        refused(query[:end], reply)
    assert "after the end" in refused(query, reply + b"\x00")


def test_one_bit_turned_at_every_byte_raises_nothing_but_faults() -> None:
    """Few bytes are bound by nothing: the SignedData's own version and list of hashes."""
    query, reply = request(DATA), GOOD.response()
    passed = 0
    for at in range(len(reply)):
        try:
            verify(query, reply[:at] + bytes([reply[at] ^ 0x01]) + reply[at + 1 :], ROOT)
            passed += 1
        except Fault:
            pass
    assert passed < 25


@given(st.data())
def test_any_bytes_anywhere_raise_nothing_but_faults(data: st.DataObject) -> None:
    """Other bytes in the place of some, or more or fewer, in the request or in the response."""
    sides = [request(DATA), REPLY]
    side = data.draw(st.integers(0, 1))
    first = data.draw(st.integers(0, len(sides[side]) - 1))
    last = data.draw(st.integers(first, min(len(sides[side]), first + 12)))
    sides[side] = sides[side][:first] + data.draw(st.binary(max_size=12)) + sides[side][last:]
    with suppress(Fault):
        assert verify(sides[0], sides[1], ROOT) == MIDDAY


@given(st.binary(max_size=64))
def test_any_bytes_are_der_or_a_fault(data: bytes) -> None:
    with suppress(DerFault):
        assert parse(data).raw == data


def test_a_bit_turned_in_the_signature() -> None:
    reply = GOOD.response()
    says = refused(request(DATA), reply[:-1] + bytes([reply[-1] ^ 0x01]))
    assert "does not verify" in says


def test_what_the_library_only_warns_of_is_not_said() -> None:
    """A serial number below 1, and a country of more than two letters; any other warning is heard."""
    serial = integer(SIGNER.certificate.serial_number)
    negative = SIGNER.der.replace(serial, serial[:2] + bytes([serial[2] | 0x80]) + serial[3:], 1)
    country = SIGNER.der.replace(b"\x55\x04\x03", b"\x55\x04\x06")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        load(negative)
        with pytest.raises(Fault, match="no chain"):
            check_chain(load(country), [], [ROOT.certificate], MIDDAY)
        assert heard == []
        with hostile():
            warnings.warn("something else", stacklevel=1)
    assert [str(one.message) for one in heard] == ["something else"]
