"""The tiny study in edition 2, with what may come to a seal: cosigners, a time stamp, amendments, images."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from audits_fixture import Builder
from audits_kit import failed, look
from audits_plan import Plan
from audits_second import SECOND_EVENTS
from audits_slow import Json
from audits_stamps import Stamp, authority, request, stamper
from audits_tools import fingerprint, public, run, sha, sign

ROOT = authority("root")
MIDDLE = authority("middle", ROOT)
STAMPER = stamper(MIDDLE)
TIME = datetime(2026, 11, 29, 10, 0, 3, 250_000, UTC)
"""When the tests' seals are stamped: after they were made."""
_IMAGE = {"image": "1", "platform": "2", "id": "3"}
IMAGES = {"b-1": {key: f"sha256:{digit * 64}" for key, digit in _IMAGE.items()}}
SIGNERS = {"need": 2, "principals": ["ann@example.org", "bob@example.org", "cat@example.org"]}
KEYS = {"ann": "author", "bob": "stranger", "cat": "third", "col": "collector", "rev": "reviewer"}
"""The key of each person, by the first part of the name."""


def second(
    edit: Callable[[str, Any], Any] = lambda name, value: value,
    make: Callable[..., Plan] = Plan,
    upto: str = "collected",
    **protocol: Any,
) -> Plan:
    """A plan of edition 2 whose protocol has these members too."""

    def apply(name: str, value: Any) -> Any:
        if name == "protocol.json":
            value = value | {"edition": 2} | protocol
        if name == "code":
            (value.parent / "roots.pem").write_bytes(ROOT.pem)
        if protocol.get("runtime") == "container" and name == "manifest":
            value = value | {"images": IMAGES}
        if protocol.get("runtime") == "container" and name == "collection-started body":
            images = {build: image["id"] for build, image in IMAGES.items()}
            value = value | {"container": {"engine": "podman", "version": "4.3.1", "images": images}}
        return edit(name, value)

    return make(edit=apply, upto=upto, events=list(SECOND_EVENTS))


class Sealed(Builder):
    """A study whose verbs commit with trailers, with steps of a test's own between them."""

    before: tuple[Callable[[Sealed], object], ...] = ()
    """What is done between the seal and the collection."""
    after: tuple[Callable[[Sealed], object], ...] = ()
    """What is done after the collection."""

    def start(self) -> None:
        super().start()
        with (self.root / "trust/allowed_signers").open("a") as signers:
            for name in ("bob", "cat"):
                signers.write(f"{name}@example.org {public(self.keys / KEYS[name])}\n")
        roles = json.loads((self.root / "trust/roles.json").read_text())
        roles["roles"] |= {"bob@example.org": ["author"], "cat@example.org": ["author"]}
        (self.root / "trust/roles.json").write_text(json.dumps(roles))
        self.commit("trust")

    def seal(self) -> None:
        super().seal()
        self.tag("sealed")
        for step in self.before:
            step(self)

    def collect(self) -> None:
        super().collect()
        for step in self.after:
            step(self)

    def trailers(self) -> dict[str, str]:
        return {
            "Prereg-Study": self.plan.study, "Prereg-Seal": self.digest,
            "Prereg-Ledger-Head": sha(self.lines[-1]),
        }  # fmt: skip

    def commit(self, message: str) -> None:
        said = self.plan.edit("trailers", self.trailers()) if self.lines else {}
        block = "\n".join(f"{key}: {value}" for key, value in said.items())
        super().commit(f"{message}\n\n{block}" if block else message)

    def tag(self, name: str, commit: str = "HEAD") -> None:
        run("git", "tag", "-f", "-a", "-m", name, f"prereg/{self.plan.study}/{name}", commit, cwd=self.root)

    def enter(self, kind: str, who: str, **body: Any) -> None:
        """One entry of the ledger, its signed head, and the commit."""
        self.entry(kind, f"{who}@example.org", {"seal": self.digest} | body)
        self.head(KEYS[who])
        self.commit(kind)


Step = Callable[[Sealed], object]


def build(root: Path, keys: Path, plan: Plan, *before: Step, after: tuple[Step, ...] = ()) -> Sealed:
    builder = Sealed(root / "r", keys, plan)
    builder.before, builder.after = before, after
    builder.build()
    return builder


def cosign(who: str = "bob", key: str | None = None, *, entries: int = 1, file: bool = True) -> Step:
    """Somebody else signs the seal too."""

    def step(b: Sealed) -> None:
        data = (b.folder / "seal/manifest.json").read_bytes()
        signature = sign(b.keys / (key or KEYS[who]), data, "prereg-seal")
        if file:
            b.write(f"seal/cosign/{who}@example.org.sig", signature)
        for _ in range(entries):
            b.enter("cosigned", who, signature_sha256=sha(signature))
        if not entries:
            b.commit("cosign")

    return step


def stamp(change: Callable[[Stamp], Stamp] = lambda s: s, *, entries: int = 1, **body: Any) -> Step:
    """The seal is stamped by an authority."""

    def step(b: Sealed) -> None:
        signature = (b.folder / "seal/manifest.json.sig").read_bytes()
        query = b.write("seal/timestamp.tsq", request(signature))
        made = change(Stamp(data=signature, signer=STAMPER, chain=(MIDDLE,), time=TIME))
        token = b.write("seal/timestamp.tsr", made.response())
        said: Json = {"request_sha256": sha(query), "token_sha256": sha(token)}
        said["time"] = TIME.isoformat(timespec="microseconds")
        for _ in range(entries):
            b.enter("timestamped", "ann", **(said | body))
        if not entries:
            b.commit("stamp")

    return step


def amend(change: Step = lambda b: b.write("NOTES.md", b"# Notes\n\nMore.\n"), **more: Any) -> Step:
    """The seal is amended: what lay in ``seal/`` is kept, and a new manifest made."""

    def step(b: Sealed) -> None:
        before = b.digest
        home = b.folder / "seal/lineage" / before
        home.mkdir(parents=True)
        for path in sorted((b.folder / "seal").iterdir()):
            if path.name != "lineage":
                shutil.move(path, home / path.name)
        change(b)
        b.bind("amended", previous=before, reason="more notes", **more)
        b.commit("amend")
        names = [path.name for path in (b.folder / "seal/lineage").iterdir()]
        b.tag(f"amended-{len(names)}")

    return step


def enter(kind: str, who: str = "ann", **body: Any) -> Step:
    return lambda b: b.enter(kind, who, **body)


def rewrite(path: str, data: bytes | None) -> Step:
    """Something of the folder is other, and committed so."""

    def step(b: Sealed) -> None:
        if data is None:
            (b.folder / path).unlink()
        else:
            b.write(path, data)
        b.commit("rewrite")

    return step


def revoke(b: Sealed, key: str, at: str, reason: str) -> None:
    item = {"key": fingerprint(b.keys / key), "at": at, "reason": reason, "note": ""}
    value = {"schema": "prereg/revocations/v1", "revocations": [item]}
    (b.root / "trust/revocations.json").write_text(json.dumps(value))


def well(builder: Sealed) -> str:
    """The whole text of a study with nothing wrong in it."""
    outcome = look(builder.folder)
    assert failed(outcome) == {}
    return "; ".join(found.detail() for found in outcome.steps.values())
