"""Faults in how a study of edition 2 is sealed, cosigned and amended, by people who hold their own keys.

Entries are signed and committed as a verb does it, so that nothing is wrong but the fault itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forge
import lives_second
import stamps
import tools

from prereg.seal.keys import load_key

MANIFEST = "seal/manifest.json"


def signature(study: Path, who: str, data: bytes, namespace: str = "prereg-seal") -> bytes:
    """Somebody's signature of these bytes, as a manifest if nothing else is said."""
    return load_key(study.parents[2] / "keys" / who).sign(data, namespace=namespace)


def seal_of(study: Path) -> str:
    """The digest of the present seal."""
    return tools.sha((study / MANIFEST).read_bytes())


def add(study: Path, kind: str, body: dict[str, Any], who: str) -> None:
    """Add an entry at the time of the last one, signed by its actor, and commit everything."""

    def change(found: list[Any]) -> None:
        entry = {"time": found[-1]["time"], "type": kind, "actor": f"{who}@example.org"}
        found.append(entry | {"body": {"seal": seal_of(study), **body}})

    forge.entries(study, change, who)
    tools.git(study, "add", "-A")
    tools.git(study, "commit", "-q", "-m", kind)


def again(study: Path, change: Callable[[list[Any]], Any], who: str) -> None:
    """Change the entries as the last one's actor, whose commit is made anew."""
    forge.entries(study, change, who)
    forge.amend(study)


def start(study: Path) -> None:
    """The collector begins, whatever is missing."""
    environments = json.loads((study / MANIFEST).read_bytes())["environments"]
    body = {"attempt": 1, "environments": environments, "workers": 1, "network": "not-cut"}
    add(study, "collection-started", body | {"network_reason": "a test"}, "col")


def cosign(study: Path, name: str, by: str) -> None:
    """A cosignature in the name of somebody, by a key, is entered and signed by that key."""
    data = signature(study, by, (study / MANIFEST).read_bytes())
    place = study / "seal/cosign" / f"{name}@example.org.sig"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(data)

    def change(found: list[Any]) -> None:
        found[-1]["actor"] = f"{name}@example.org"

    add(study, "cosigned", {"signature_sha256": tools.sha(data)}, by)
    if name != by:
        again(study, change, by)


def countersigned(study: Path, data: bytes) -> None:
    """The last cosigner, cyd, gives this as the signature instead."""
    (study / "seal/cosign/cyd@example.org.sig").write_bytes(data)
    again(study, lambda found: found[-1]["body"].update(signature_sha256=tools.sha(data)), "cyd")


def stamp(study: Path, who: str = "ada") -> None:
    """The seal is stamped, by the authority that it believes, and somebody enters it."""
    request = stamps.request((study / f"{MANIFEST}.sig").read_bytes())
    (study / stamps.REQUEST).write_bytes(request)
    (study / stamps.RESPONSE).write_bytes(stamps.token(study))
    add(study, "timestamped", stamps.made(study), who)


def amend(study: Path, change: Callable[[dict[str, Any]], Any] = lambda protocol: None) -> None:
    """The author amends the protocol, whether or not that is allowed here."""
    before, old = seal_of(study), study / "seal"
    kept = old / "lineage" / before
    files = [p for p in old.rglob("*") if p.is_file() and "lineage" not in p.relative_to(old).parts]
    for file in files:
        to = kept / file.relative_to(old)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(file.read_bytes())
        if file.parent.name == "cosign" or file.name.startswith("timestamp"):
            file.unlink()
    if (old / "cosign").exists():
        (old / "cosign").rmdir()
    protocol = json.loads((study / "protocol.json").read_bytes())
    change(protocol)
    forge.sealed_file(study, "protocol.json", json.dumps(protocol).encode())
    forge.manifest(study, lambda value: value.update(amends=before))
    commit = json.loads((study / MANIFEST).read_bytes())["commit"]
    signed = tools.sha((study / f"{MANIFEST}.sig").read_bytes())
    body = {"previous": before, "signature_sha256": signed, "commit": commit, "reason": "A test."}
    add(study, "amended", body, "ada")


def trusted(study: Path, name: str, key: str) -> None:
    """Trust gives a key to an author, beside what it gives already."""
    trust = study.parent.parent / "trust"
    kind, public = (study.parents[2] / "keys" / f"{key}.pub").read_text().split()[:2]
    with (trust / "allowed_signers").open("a") as file:
        file.write(f"{name}@example.org {kind} {public}\n")
    roles = json.loads((trust / "roles.json").read_bytes())
    roles["roles"][f"{name}@example.org"] = ["author"]
    (trust / "roles.json").write_text(json.dumps(roles))


def revoke(study: Path, who: str, reason: str, at: str) -> dict[str, Any]:
    """Revoke somebody's key; returns what was written."""
    key = load_key(study.parents[2] / "keys" / who).fingerprint
    entry = {"key": key, "at": at, "reason": reason, "note": "a test"}
    value = {"schema": "prereg/revocations/v1", "revocations": [entry]}
    (study.parent.parent / "trust/revocations.json").write_text(json.dumps(value))
    return value


def earlier(study: Path, number: int = 0) -> Path:
    """The folder of an amended seal, the oldest first."""
    return lives_second.lineage(study)[number]
