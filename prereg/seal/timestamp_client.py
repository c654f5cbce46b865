"""Asking a time-stamping authority over HTTP (RFC 3161 section 3.4), once and within bounds."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import IO, Any

from prereg.errors import EvidenceIncomplete, UsageError
from prereg.seal.timestamp_token import MAX_BYTES

QUERY, REPLY = "application/timestamp-query", "application/timestamp-reply"
TIMEOUT_SECONDS = 30.0
"""Longest wait for the whole answer."""


def new_request(signature: bytes) -> bytes:
    """A TimeStampReq for these bytes: SHA-256, a fresh nonce, and the certificate asked for."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    builder = TimestampRequestBuilder().data(signature).hash_algorithm(HashAlgorithm.SHA256)
    return builder.nonce(nonce=True).cert_request(cert_request=True).build().as_bytes()


def check_url(url: str) -> None:
    """Raise UsageError unless `url` is plain http or https with a host and without a password."""
    try:
        parts = urllib.parse.urlsplit(url)
        fault = (
            "is not http or https"
            if parts.scheme not in ("http", "https")
            else "names no host"
            if not parts.hostname or parts.port == 0
            else "holds a name and a password"
            if "@" in parts.netloc
            else "has spaces or control characters"
            if any(ch <= " " or ch == "\x7f" for ch in url)
            else None
        )
    except ValueError as error:
        fault = f"is no URL: {error}"
    if fault is not None:
        raise UsageError(
            f"the authority's address {fault}", where=url[:200], next_step="--url https://tsa.example.org/tsr"
        )


def ask(url: str, request: bytes, *, timeout: float = TIMEOUT_SECONDS) -> bytes:
    """The authority's answer to `request`, unchecked but for its kind and size.

    Redirections are not followed. Raises UsageError for a bad address, and EvidenceIncomplete if no answer
    comes in `timeout` seconds or it is not a time-stamp reply.
    """
    check_url(url)
    told: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()

    def exchange() -> None:
        try:
            told.put(_exchange(url, request, timeout))
        except Exception as error:  # noqa: BLE001 (raised again by who waits)
            told.put(error)

    # The time-out of a socket is for one byte: whoever sends one now and then, before the body too, would be
    # waited for without end. So the wait is here, and an exchange that is left does not keep the program.
    threading.Thread(target=exchange, daemon=True).start()
    try:
        answer = told.get(timeout=timeout)
    except queue.Empty:
        raise _no_stamp(url, "did not answer in time") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _exchange(url: str, request: bytes, timeout: float) -> bytes:
    """One request and its answer. Raises EvidenceIncomplete, but not for the time that the header takes."""
    ends = time.monotonic() + timeout
    message = urllib.request.Request(
        url, data=request, headers={"Content-Type": QUERY, "Accept": REPLY, "User-Agent": "prereg"}
    )
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with contextlib.closing(opener.open(message, timeout=timeout)) as answer:
            kind = str(answer.headers.get("Content-Type", "")).split(";")[0].strip().lower()
            if answer.status != 200 or kind != REPLY:
                raise _no_stamp(url, f"answered {answer.status} with {kind or 'nothing'!r:.100}")
            return _read(answer, url, ends)
    except urllib.error.HTTPError as error:
        with error:
            raise _no_stamp(url, f"answered {error.code} {error.reason!s:.100}") from None
    except urllib.error.URLError as error:
        raise _no_stamp(url, f"cannot be reached: {error.reason!s:.200}") from None
    except (OSError, HTTPException, ValueError) as error:
        what = "did not answer in time" if isinstance(error, TimeoutError) else f"broke off: {error!s:.200}"
        raise _no_stamp(url, what) from None


def _read(answer: IO[bytes], url: str, ends: float) -> bytes:
    """The whole body, in pieces, so that an authority that sends a byte now and then is left in time."""
    read = getattr(answer, "read1", answer.read)
    data = b""
    while piece := read(65_536):
        data += piece
        if len(data) > MAX_BYTES:
            raise _no_stamp(url, f"sends more than {MAX_BYTES} bytes")
        if time.monotonic() > ends:
            raise TimeoutError
    return data


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A stamp comes from the address that was given, or from none."""

    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


def _no_stamp(url: str, what: str) -> EvidenceIncomplete:
    return EvidenceIncomplete(f"no time stamp: the authority {what}", where=url[:200])
