"""Studies of edition 2 whose seal needs several signatures or a time stamp.

paths = asked_study(tmp_path, signers=(2, "ada", "bob"), roots=authority.roots)
seal(paths); cosign(paths, "bob")
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prereg.seal.cosign import Cosigned, cosign_study
from prereg.seal.keys import generate_key
from prereg.seal.trust import add_signer
from prereg.store.layout import StudyPaths
from tests.unit.study_fixture import git, make_study, signing_key


def asked_study(
    tmp_path: Path,
    *,
    signers: tuple[int, *tuple[str, ...]] | None = None,
    roots: bytes | None = None,
    edition: int | None = 2,
    study: str = "coin",
) -> StudyPaths:
    """A committed draft; `signers` are how many are needed and of whom, `roots` the PEM of an authority."""
    first = not (tmp_path / "repo").exists()
    paths = make_study(tmp_path, study=study, first_seed=5_000 if first else 50_000)
    if first:
        for name in ("bob", "cyd"):
            key = generate_key(tmp_path / "keys" / name)
            add_signer(paths.repository, f"{name}@example.org", key.public_line, ["author"])
    change: dict[str, Any] = {} if edition is None else {"edition": edition}
    if signers is not None:
        change["signers"] = {"need": signers[0], "principals": [f"{n}@example.org" for n in signers[1:]]}
    if roots is not None:
        change["timestamp"] = {"roots": "roots.pem"}
        (paths.root / "roots.pem").write_bytes(roots)
    write_protocol(paths, change)
    return paths


def write_protocol(paths: StudyPaths, change: dict[str, Any]) -> None:
    """Change members of the protocol, and commit everything."""
    value = json.loads(paths.protocol.read_text())
    paths.protocol.write_text(json.dumps({**value, **change}, indent=1))
    git(paths.repository, "add", "-A")
    git(paths.repository, "commit", "-q", "-m", "Asked")


def cosign(paths: StudyPaths, who: str) -> Cosigned:
    return cosign_study(paths, key=signing_key(paths, who), principal=f"{who}@example.org")
