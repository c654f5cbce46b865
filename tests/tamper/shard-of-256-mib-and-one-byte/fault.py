"""Nothing that a shard unpacks to has more than 256 MiB, also where the meta says so and all agrees."""

import hashlib
import zlib
from pathlib import Path
from types import ModuleType

import forge

AT = "collected"
CAUGHT_BY = ("verify", "analyse", "auditor")
NAMED = {
    "verify": "268435457 bytes of lines",
    "analyse": "268435457 bytes of lines",
    "auditor": "main.fair.new/00000",
}
SIZE = (1 << 28) + 1


def apply(study: Path, tools: ModuleType) -> None:
    packer, lines = zlib.compressobj(6, zlib.DEFLATED, 31), hashlib.sha256()
    data = b""
    for piece in (bytes(1 << 24) for _ in range(16)):
        data += packer.compress(piece)
        lines.update(piece)
    lines.update(b"\n")
    data += packer.compress(b"\n") + packer.flush()
    told = {"lines_size": SIZE, "lines_sha256": lines.hexdigest()}
    forge.shard(
        study, packed=lambda text: data[:9] + b"\xff" + data[10:], meta=lambda value: value.update(told)
    )
