"""Real time stamps of one request, and edits of them that bytes choose.

`python tests/property/real_stamps.py` makes the file of data beside it anew, with the authorities of
tests/unit: the request, answers of `openssl ts` (elliptic curve, through a second authority, RSA), one with
the older attribute, and the roots.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

PLACE = Path(__file__).with_suffix(".json")
SIGNATURE = b"the bytes of seal/manifest.json.sig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """What the parsers are given beside the bytes that are tried."""

    request: bytes
    responses: list[bytes]
    roots: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One DER value: its tag, and either its content or the values in it."""

    tag: int
    content: bytes = b""
    inside: tuple[Node, ...] = ()

    def encoded(self) -> bytes:
        content = b"".join(node.encoded() for node in self.inside) if self.inside else self.content
        size = len(content)
        if size < 128:
            return bytes([self.tag, size]) + content
        octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
        return bytes([self.tag, 128 | len(octets)]) + octets + content

    def paths(self, here: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        """The place of every value, as indices from the outermost."""
        yield here
        for index, node in enumerate(self.inside):
            yield from node.paths((*here, index))

    def at(self, path: tuple[int, ...]) -> Node:
        return self.inside[path[0]].at(path[1:]) if path else self

    def put(self, path: tuple[int, ...], nodes: tuple[Node, ...]) -> Node:
        """The same with other values, or none, where the path leads."""
        if not path:
            return nodes[0] if nodes else replace(self, inside=(), content=b"")
        head, rest = path[0], path[1:]
        middle = (self.inside[head].put(rest, nodes),) if rest else nodes
        inside = (*self.inside[:head], *middle, *self.inside[head + 1 :])
        return replace(self, inside=inside)


def nodes_of(data: bytes) -> tuple[Node, ...]:
    """The values of sound DER; an octet string that holds a sequence counts as one that is made of it."""
    found = []
    while data:
        tag, size, start = data[0], data[1], 2
        if size > 127:
            start = 2 + size - 128
            size = int.from_bytes(data[2:start], "big")
        content, data = data[start : start + size], data[start + size :]
        inside: tuple[Node, ...] = ()
        if tag & 0x20 or (tag == 4 and content[:2] in (b"\x30\x81", b"\x30\x82")):
            inside = nodes_of(content)
        found.append(Node(tag=tag, content=b"" if inside else content, inside=inside))
    return tuple(found)


def load() -> Stamps:
    """The stamps that lie beside this file."""
    found = {
        name: [base64.b64decode(text) for text in texts]
        for name, texts in json.loads(PLACE.read_text()).items()
    }
    return Stamps(request=found["request"][0], responses=found["responses"], roots=found["roots"][0])


STAMPS = load() if PLACE.exists() else Stamps(request=b"", responses=[], roots=b"")
TREES = [nodes_of(response)[0] for response in STAMPS.responses]


def edited(data: bytes) -> bytes:
    """A real response with edits: each six bytes choose a value and what becomes of it. Lengths stay right.

    The first byte chooses the response. A value is dropped, doubled, moved to another place, given another
    tag, other content, a bit that is flipped, or is cut; without edits the response is as it was made.
    """
    tree = TREES[data[0] % len(TREES)] if data else TREES[0]
    for start in range(1, len(data) - 5, 6):
        which, what, rest = (
            int.from_bytes(data[start : start + 2], "big"),
            data[start + 2],
            data[start + 3 : start + 6],
        )
        paths = list(tree.paths())
        path = paths[which % len(paths)]
        node = tree.at(path)
        content = node.encoded()[2:] if node.inside else node.content
        at = int.from_bytes(rest[:2], "big") % (len(content) + 1)
        flipped = (
            content[:at] + bytes(octet ^ (rest[2] or 1) for octet in content[at : at + 1]) + content[at + 1 :]
        )
        other = tree.at(paths[int.from_bytes(rest[:2], "big") % len(paths)])
        choices: list[tuple[Node, ...]] = [
            (),
            (node, node),
            (other,),
            (replace(node, tag=rest[0]),),
            (Node(tag=node.tag, content=rest),),
            (Node(tag=node.tag, content=flipped),),
            (Node(tag=node.tag, content=content[:at]),),
            (Node(tag=node.tag, content=content[:at] + rest + content[at:]),),
        ]
        tree = tree.put(path, choices[what % len(choices)])
    return tree.encoded()


def make() -> None:
    """Write real_stamps.json."""
    sys.path[:0] = [str(PLACE.parents[2]), str(PLACE.parents[1] / "unit")]
    from timestamp_fixture import Authority

    from prereg.seal.timestamp_client import new_request

    request = new_request(SIGNATURE)
    with tempfile.TemporaryDirectory() as name:
        plain, through, rsa = (
            Authority(folder=Path(name) / kind, kind=kind.partition(" ")[0], through="through" in kind)
            for kind in ("ec", "ec through", "rsa")
        )
        responses = [authority.stamp(request) for authority in (plain, through, rsa)]
        responses.append(plain.token(request, named_hash="sha1"))
        roots = b"".join(authority.roots for authority in (plain, through, rsa))
    made = {"request": [request], "responses": responses, "roots": [roots]}
    texts = {key: [base64.b64encode(data).decode() for data in values] for key, values in made.items()}
    PLACE.write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    make()
