"""Section 4: which lines of ``allowed_signers`` are read, and that any other makes the whole file refused."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from audits.fault import Fault
from audits.trust import parse_signers

ED = b"ssh-ed25519"
P256, P384 = b"ecdsa-sha2-nistp256", b"ecdsa-sha2-nistp384"
SK_ED, SK_EC = b"sk-ssh-ed25519@openssh.com", b"sk-ecdsa-sha2-nistp256@openssh.com"
ODD = (1 << 2047) + 1
"""As a modulus it has 2048 bits."""


def wire(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def number(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big")


def point(curve: ec.EllipticCurve, form: PublicFormat = PublicFormat.UncompressedPoint) -> bytes:
    return ec.derive_private_key(7, curve).public_key().public_bytes(Encoding.X962, form)


def told(kind: bytes, *parts: bytes, more: bytes = b"") -> str:
    return f"{kind.decode()} {base64.b64encode(wire(kind, *parts) + more).decode()}"


KEY = told(ED, bytes(range(32)))
FIRST, SECOND = point(ec.SECP256R1()), point(ec.SECP384R1())
OFF = FIRST[:-1] + bytes([FIRST[-1] ^ 1])
SHORT = point(ec.SECP256R1(), PublicFormat.CompressedPoint)

GOOD = {
    "plain": f"ann@x {KEY}",
    "tabs and more blanks": f" \tann@x\t {KEY.replace(' ', chr(9))} \t",
    "a comment after it": f"ann@x {KEY} of Ann\u00a0\u2028\tB.",
    "names": f"bob@x,ann@x {KEY}",
    "options": f'ann@x namespaces="a\u00a0b, c",valid-after="20260101"\t {KEY}',
    "another script": f"\u00e5nn@x {KEY}",
    "rsa": f"ann@x {told(b'ssh-rsa', number(65537), number(ODD))}",
    "p256": f"ann@x {told(P256, b'nistp256', FIRST)}",
    "p384": f"ann@x {told(P384, b'nistp384', SECOND)}",
    "a token's": f"ann@x {told(SK_ED, bytes(32), b'ssh:')}",
    "a token's of a curve": f"ann@x {told(SK_EC, b'nistp256', FIRST, b'ssh:')}",
}


@pytest.mark.parametrize("name", GOOD)
def test_a_line_that_is_read(name: str) -> None:
    data = f"\n \t\n \t# a comment\u00a0\n{GOOD[name]}\n"
    (signer,) = parse_signers(data.encode(), "allowed_signers")
    assert signer.line == 4 and signer.principals[-1].endswith("nn@x")


BLANK = {
    "no-break space": "\u00a0", "line separator": "\u2028", "ideographic space": "\u3000",
    "vertical tab": "\v", "form feed": "\f", "carriage return": "\r", "file separator": "\x1c",
    "next line": "\x85", "nul": "\0", "delete": "\x7f",
}  # fmt: skip
"""White space that parts no fields, and control characters."""
CONTROL = {name: sign for name, sign in BLANK.items() if not name.endswith(("space", "line separator"))}


def _signs() -> dict[str, str]:
    lines: dict[str, str] = {}
    for name, sign in BLANK.items():
        lines |= {
            f"{name} before the name": f"{sign}ann@x {KEY}",
            f"{name} in the name": f"a{sign}nn@x {KEY}",
            f"{name} after the name": f"ann@x{sign}{KEY}",
            f"{name} after the options": f'ann@x namespaces="a"{sign}{KEY}',
            f"{name} before the options": f'ann@x {sign}namespaces="a" {KEY}',
            f"{name} in the key": f"ann@x {KEY.replace(' ', sign)}",
            f"{name} after the key": f"ann@x {KEY}{sign}of Ann",
            f"{name} alone": sign,
            f"{name} before a comment": f"{sign}# a comment",
        }
    for name, sign in CONTROL.items():
        lines |= {
            f"{name} in a comment": f"# a{sign}comment",
            f"{name} in what follows the key": f"ann@x {KEY} of{sign}Ann",
            f"{name} at the end": f"ann@x {KEY}{sign}",
            f"{name} in an option": f'ann@x namespaces="a{sign}b" {KEY}',
        }
    return lines


def _keys() -> dict[str, str]:
    kind, text = KEY.split()
    keys = {
        "none": kind,
        "a type alone": told(ED),
        "ed25519 of 31 bytes": told(ED, bytes(31)),
        "ed25519 of 33 bytes": told(ED, bytes(33)),
        "ed25519 of no bytes": told(ED, b""),
        "ed25519 with a string more": told(ED, bytes(32), b""),
        "ed25519 with a byte more": told(ED, bytes(32), more=b"\0"),
        "ed25519 cut short": f"{kind} {base64.b64encode(wire(ED, bytes(32))[:-1]).decode()}",
        "of another type": f"ssh-rsa {text}",
        "base64 with a sign more": f"{kind} {text[:9]}-{text[9:]}",
        "base64 with padding more": f"{kind} {text}====",
        "base64 without its padding": told(SK_ED, bytes(32), b"ssh:").rstrip("="),
        "base64 with bits left over": told(SK_ED, bytes(32), b"ssh:xx").replace("eA==", "eB=="),
        "a token's without an application": told(SK_ED, bytes(32)),
        "a token's of 31 bytes": told(SK_ED, bytes(31), b"ssh:"),
        "a token's with a byte more": told(SK_ED, bytes(32), b"ssh:", more=b"\0"),
        "a token's with a point off its curve": told(SK_EC, b"nistp256", OFF, b"ssh:"),
        "a token's of another curve": told(SK_EC, b"nistp384", FIRST, b"ssh:"),
        "a point off its curve": told(P256, b"nistp256", OFF),
        "a point compressed": told(P256, b"nistp256", SHORT),
        "a point of another curve": told(P256, b"nistp256", SECOND),
        "a point of nothing": told(P256, b"nistp256", b""),
        "a curve of another type": told(P256, b"nistp384", SECOND),
        "a curve with a byte more": told(P384, b"nistp384", SECOND, more=b"\0"),
    }
    three, most = number(3), number(ODD)
    for name, parts in {
        "no modulus": (three,),
        "a part more": (three, most, b""),
        "2047 bits": (three, number(ODD >> 1)),
        "padding before the modulus": (three, b"\0" + most),
        "padding before the exponent": (b"\0" + three, most),
        "a negative modulus": (three, most[1:]),
        "a negative exponent": (b"\xff", most),
        "an exponent of nothing": (b"", most),
        "an exponent of a zero": (b"\0", most),
        "a modulus of nothing": (three, b""),
    }.items():
        keys[f"rsa with {name}"] = told(b"ssh-rsa", *parts)
    return {f"key: {name}": f"ann@x {key}" for name, key in keys.items()}


BAD = {
    "a quotation mark in the name": f'a"nn@x {KEY}',
    "a name in quotation marks": f'"ann@x" {KEY}',
    "a space in quotation marks": f'"ann x" {KEY}',
    "an empty name": f"ann@x, {KEY}",
    "only a name": "ann@x",
    "a name and an option": 'ann@x namespaces="a"',
    "an option at the name": f'ann@xnamespaces="a" {KEY}',
    "an option at the key": f'ann@x namespaces="a"{KEY}',
    "a comma after the options": f'ann@x namespaces="a", {KEY}',
    "a comma alone": f"ann@x , {KEY}",
    "a date of another script": f'ann@x valid-after="\uff12\uff10260101" {KEY}',
    "a blank in a date": f'ann@x valid-after="20260101 " {KEY}',
    **_signs(),
    **_keys(),
}


@pytest.mark.parametrize("name", BAD)
def test_a_line_that_is_not_read_makes_the_file_refused(name: str) -> None:
    data = f"{GOOD['plain']}\n{BAD[name]}\n{GOOD['plain']}\n"
    with pytest.raises(Fault, match="line 2 cannot be read"):
        parse_signers(data.encode(), "allowed_signers")


def test_lines_that_end_as_on_windows_are_refused() -> None:
    with pytest.raises(Fault, match="line 1 cannot be read: it has a control character"):
        parse_signers(f"{GOOD['plain']}\r\n".encode(), "allowed_signers")
