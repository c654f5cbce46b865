"""Lines of the wire, and what the worker's descriptors are for."""

from __future__ import annotations

import io

import pytest

from harness.wire import Channel, parse


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"junk\n", "not a line of JSON"),
        (b"[1]\n", "not a JSON object"),
        (b"\xff\xfe\n", "not a line of JSON"),
        (b'{"op":"hello","op":"close","id":1}\n', "same key twice"),
        (b'{"id":NaN}\n', "NaN is not JSON"),
        (b'{"id":-Infinity}\n', "-Infinity is not JSON"),
        (b"[" * 100_000 + b"\n", "not a line of JSON"),
        (b'{"id":' + b"1" * 5000 + b"}\n", "not a line of JSON"),
    ],
)
def test_a_line_that_is_no_request_says_why(raw: bytes, fault: str) -> None:
    line = parse(raw)
    assert line.request is None
    assert fault in line.fault


def test_a_request_is_parsed() -> None:
    line = parse(b'{"op":"hello","id":7}\n')
    assert line.request == {"op": "hello", "id": 7}
    assert line.fault == ""


def test_a_reply_is_one_line_of_ascii_whatever_is_in_it() -> None:
    sink = io.BytesIO()
    Channel(source=io.BytesIO(), sink=sink).send({"id": 1, "ok": "two\nlines, \u2028 and \ud800"})
    assert sink.getvalue() == b'{"id":1,"ok":"two\\nlines, \\u2028 and \\ud800"}\n'


def test_a_reply_is_never_nan() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        Channel(source=io.BytesIO(), sink=io.BytesIO()).send({"id": 1, "ok": float("nan")})


def test_blank_lines_are_no_requests_and_the_last_line_needs_no_newline() -> None:
    channel = Channel(source=io.BytesIO(b'\n  \n{"id":1}\n\n{"id":2}'), sink=io.BytesIO())
    assert [line.request for line in channel.lines()] == [{"id": 1}, {"id": 2}]
