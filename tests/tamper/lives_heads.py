"""A study of edition 3 whose heads are stamped, at every state of its life, by prereg's own verbs.

Sealed by ada, cosigned by bob, stamped, collected, analysed and audited; each head that is handed over has a
stamp, and so has each of ada's last ones. Helpers make stamps as anybody could: no key is needed for one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import stamps
import study_fixture
import tools
import verbs
from study_fixture import git
from timestamp_fixture import serve

from prereg.seal.keys import generate_key
from prereg.seal.trust import add_signer

Save = Callable[[str], None]
FILES = ("ledger.head.json", "ledger.head.json.sig", "timestamp.tsq", "timestamp.tsr")


def heads_life(place: Path, cache: Path, save: Save) -> None:
    """Make the study at `place`, and call `save` with the name of each state that it comes to."""
    root = _draft(place)
    with serve(stamps.authority().stamp) as url:

        def verb(name: str, who: str, *more: str) -> None:
            env = {"PREREG_CACHE": str(cache), "no_proxy": "127.0.0.1"}
            key = ("--key", str(place / "keys" / who)) if who else ()
            done = verbs.prereg(name, str(root), *key, *more, env=env)
            assert done.code == 0, done.said

        verb("seal", "ada")
        verb("cosign", "bob")
        verb("timestamp", "", "--head", "--url", url)
        verb("timestamp", "ada", "--url", url)
        verb("timestamp", "", "--head", "--url", url)
        save("sealed")
        verb("collect", "col")
        verb("timestamp", "", "--head", "--url", url)
        save("collected")
        verb("analyse", "ada")
        verb("timestamp", "", "--head", "--url", url)
        save("analysed")
        verb("audit", "rex")
        verb("timestamp", "", "--head", "--url", url)
        save("audited")


def _draft(place: Path) -> Path:
    paths = study_fixture.make_study(place, draws=2000, rows=100, shard_requests=10)
    key = generate_key(place / "keys" / "bob")
    add_signer(paths.repository, "bob@example.org", key.public_line, ["author"])
    (paths.root / "roots.pem").write_bytes(stamps.authority().roots)
    value = json.loads(paths.protocol.read_bytes()) | {
        "edition": 3,
        "signers": {"need": 2, "principals": ["ada@example.org", "bob@example.org"]},
        "timestamp": {"roots": "roots.pem"},
    }
    paths.protocol.write_text(json.dumps(value, indent=1))
    git(paths.repository, "add", "-A")
    git(paths.repository, "commit", "-q", "-m", "Edition 3")
    return paths.root


def folders(study: Path) -> list[Path]:
    """The stamps of heads, the oldest first."""
    return sorted((study / "stamps").iterdir(), key=lambda folder: int(folder.name))


def of(study: Path, who: str) -> list[Path]:
    """The stamps of the heads that somebody signed."""
    return [f for f in folders(study) if json.loads((f / FILES[0]).read_bytes())["actor"].startswith(who)]


def moment(days: int) -> tuple[str, str]:
    """A time some days from now, as a token has it and as a file of trust has it."""
    at = datetime.now(UTC) + timedelta(days=days)
    return f"{at:%Y%m%d%H%M%S}Z", f"{at:%Y-%m-%dT%H:%M:%S}+00:00"


def stamp(folder: Path, name: str = "own", **faults: Any) -> None:
    """The head in a folder is stamped, by an authority that is believed if nothing else is said."""
    request = stamps.request((folder / FILES[1]).read_bytes())
    (folder / FILES[2]).write_bytes(request)
    (folder / FILES[3]).write_bytes(
        stamps.authority(name).token(request, **({"time": moment(0)[0]} | faults))
    )


def stamp_present(study: Path, **faults: Any) -> Path:
    """Anybody has the present head stamped; returns where the stamp lies."""
    head = study / FILES[0]
    folder = study / "stamps" / str(json.loads(head.read_bytes())["seq"])
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES[:2]:
        shutil.copy(study / name, folder / name)
    stamp(folder, **faults)
    return folder


def commit(study: Path) -> None:
    """Everything is committed, as whoever has it may."""
    tools.git(study, "add", "-A")
    tools.git(study, "commit", "-q", "-m", "Stamps")
