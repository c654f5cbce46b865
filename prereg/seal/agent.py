"""A key that an ssh-agent holds: listing and signing (the agent protocol, draft-ietf-sshm-ssh-agent).

The agent signs what we hand it and never gives the key away. What it returns is verified before use, as the
signature of any other key is.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from prereg.errors import EvidenceIncomplete, UsageError
from prereg.seal.sshwire import Cut, Reader, string

PREFIX = "agent:"
"""`--key agent:SHA256:…` names a key that the agent holds."""
TIMEOUT_SECONDS = 60.0
"""Longest wait for an answer: the agent may ask its owner to confirm."""
MAX_ANSWER = 262_144

_REQUEST_IDENTITIES, _IDENTITIES = 11, 12
_SIGN_REQUEST, _SIGN_RESPONSE = 13, 14
_RSA_SHA2_512 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKey:
    """A public key whose private half the agent holds."""

    public_key: bytes
    comment: str


def agent_keys() -> list[AgentKey]:
    """The keys of the agent that SSH_AUTH_SOCK names.

    Raises UsageError if it names none, and EvidenceIncomplete if the agent does not answer as it should.
    """
    reader = Reader(_ask(_REQUEST_IDENTITIES, b"", _IDENTITIES))
    try:
        count = reader.number()
        found = []
        for _ in range(count):
            key, comment = reader.string(), reader.string()
            found.append(AgentKey(public_key=key, comment=comment.decode("utf-8", "replace")))
        reader.end()
    except Cut as error:
        raise _strange(str(error)) from None
    return found


def agent_sign(public_key: bytes, data: bytes) -> bytes:
    """The agent's signature of `data`, in SSH's wire form (algorithm and value).

    Raises UsageError if the agent refuses, and EvidenceIncomplete if it does not answer as it should.
    """
    payload = string(public_key) + string(data) + _RSA_SHA2_512.to_bytes(4, "big")
    reader = Reader(_ask(_SIGN_REQUEST, payload, _SIGN_RESPONSE))
    try:
        signature = reader.string()
        reader.end()
    except Cut as error:
        raise _strange(str(error)) from None
    return signature


def _ask(kind: int, payload: bytes, expected: int) -> bytes:
    """Send one message and return the body of its answer."""
    path = os.environ.get("SSH_AUTH_SOCK")
    if not path:
        raise UsageError(
            "no ssh-agent is running", where="SSH_AUTH_SOCK", next_step='eval "$(ssh-agent)" && ssh-add KEY'
        )
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(TIMEOUT_SECONDS)
            link.connect(path)
            link.sendall(string(bytes([kind]) + payload))
            size = int.from_bytes(_receive(link, 4), "big")
            if not 1 <= size <= MAX_ANSWER:
                raise _strange(f"an answer of {size} bytes")
            answer = _receive(link, size)
    except OSError as error:
        what = "did not answer in time" if isinstance(error, TimeoutError) else f"{error.strerror or error}"
        raise EvidenceIncomplete(
            f"the ssh-agent cannot be asked: {what}", where=path, next_step="ssh-add -l"
        ) from None
    if answer[0] != expected:
        raise UsageError("the ssh-agent refuses", where=path, next_step="ssh-add -l, to see its keys")
    return answer[1:]


def _receive(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = link.recv(size - len(data))
        if not piece:
            raise _strange("its answer is cut off")
        data += piece
    return data


def _strange(what: str) -> EvidenceIncomplete:
    return EvidenceIncomplete(f"the ssh-agent does not answer as agents do: {what}", where="SSH_AUTH_SOCK")
