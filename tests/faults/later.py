"""The verbs of a study's life beside `collect`: where each comes next, and what it is run with."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import verbs
from test_collect_kit import git

from prereg.seal import sshsig
from prereg.seal.keys import load_key
from prereg.seal.rotation import read_repository, state_of

TITLE = "A coin, by another name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A copy of the keys and the repository, in a folder that else has only what a verb brings along."""

    home: Path
    builds: Path
    url: str
    """Of the time authority."""
    archive: Path
    """Records that were ever stored."""

    @property
    def study(self) -> Path:
        """The study's folder."""
        return self.home / "repo" / "studies" / "coin"

    @property
    def repository(self) -> Path:
        """The repository's folder."""
        return self.home / "repo"

    def key(self, who: str) -> str:
        """Somebody's private key file."""
        return str(self.home / "keys" / who)

    def fingerprint(self, who: str) -> str:
        """Of somebody's key."""
        return load_key(self.home / "keys" / who).fingerprint

    def run(self, *arguments: str, before: Callable[[], object] = lambda: None) -> verbs.Done:
        """Run a command line to its end."""
        env = {"PREREG_CACHE": str(self.builds), "no_proxy": "127.0.0.1", "TMPDIR": str(self.home)}
        return verbs.start(*arguments, env=env, before=before).wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A command line that is killed."""

    state: str
    """Of the study `signed` (tests/tamper/lives_second.py), in edition 3."""
    arguments: Callable[[Place], list[str]]
    prepare: Callable[[Place], object] = field(default=lambda place: None)
    who: str = "ada"
    """Whose key signs what is said to be next."""
    done: int = 4
    """Exit code of a run that finds nothing left to do."""
    settled: Callable[[Place], bool] = field(default=lambda place: True)
    """Whether trust/ says what the verb was to make it say."""


def _on_study(verb: str, who: str, *more: str) -> Callable[[Place], list[str]]:
    return lambda place: [verb, str(place.study), "--key", place.key(who), *more]


def _on_trust(*words: str) -> Callable[[Place], list[str]]:
    """`{bob}` stands for the fingerprint of bob's key, `{home}` for the folder."""
    return lambda place: [
        *("key", words[0]),
        *(word.format(bob=place.fingerprint("bob"), home=place.home) for word in words[1:]),
        *("--repository", str(place.repository)),
    ]


def _retitled(place: Place) -> None:
    file = place.study / "protocol.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"title": TITLE}, indent=1))


def _remote(place: Place) -> None:
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(place.home / "bare")], check=True)
    git(place.repository, "remote", "add", "origin", str(place.home / "bare"))


def _signs(name: str) -> Callable[[Place], bool]:
    """Whether somebody has a key that signs now, and the role of an author."""

    def settled(place: Place) -> bool:
        trust = read_repository(place.repository)
        lines = [s for s in trust.signers if f"{name}@example.org" in s.principals]
        now = [s for s in lines if state_of(s, trust, now=datetime.now(UTC)) == "valid"]
        return bool(now) and "author" in trust.roles.get(f"{name}@example.org", ())

    return settled


def _has_ended(place: Place) -> bool:
    trust, old = read_repository(place.repository), place.fingerprint("bob")
    (line,) = (s for s in trust.signers if sshsig.fingerprint(s.public_key) == old)
    return line.valid_before is not None and _signs("bob")(place)


def _is_revoked(place: Place) -> bool:
    return place.fingerprint("bob") in read_repository(place.repository).revocations


def _new_key(place: Place) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place.key("next")], check=True)


VERBS: dict[str, Verb] = {
    "seal": Verb(state="draft", arguments=_on_study("seal", "ada")),
    "cosign": Verb(state="amended", arguments=_on_study("cosign", "bob"), who="bob"),
    "timestamp": Verb(
        state="cosigned",
        arguments=lambda place: [*_on_study("timestamp", "ada")(place), "--url", place.url],
    ),
    "amend": Verb(
        state="first", arguments=_on_study("amend", "ada", "--reason", "A name."), prepare=_retitled
    ),
    "timestamp --head": Verb(
        state="collected",
        arguments=lambda place: ["timestamp", str(place.study), "--head", "--url", place.url],
    ),
    "push": Verb(state="stamped", arguments=_on_study("push", "ada"), prepare=_remote),
    "deviate": Verb(state="collected", arguments=_on_study("deviate", "ada", "--text", "Another host.")),
    "relocate": Verb(
        state="archived",
        arguments=lambda place: [
            *_on_study("relocate", "ada", "--reason", "Too large.")(place),
            *("--from", str(place.archive)),
        ],
    ),
    "analyse": Verb(state="relocated", arguments=_on_study("analyse", "ada")),
    "audit": Verb(state="analysed", arguments=_on_study("audit", "rex"), who="rex"),
    "close": Verb(state="audited", arguments=_on_study("close", "ada", "--reason", "Published.")),
    "key new": Verb(
        state="collected",
        arguments=_on_trust("new", "{home}/keys/dan", "--principal", "dan@example.org", "--role", "author"),
        done=2,
        settled=_signs("dan"),
    ),
    "key add": Verb(
        state="collected",
        arguments=_on_trust(
            "add", "{home}/keys/next.pub", "--principal", "dan@example.org", "--role", "author"
        ),
        prepare=_new_key,
        settled=_signs("dan"),
    ),
    "key rotate": Verb(
        state="collected",
        arguments=_on_trust("rotate", "{bob}", "--to", "{home}/keys/next"),
        done=2,
        settled=_has_ended,
    ),
    "key revoke": Verb(
        state="collected",
        arguments=_on_trust("revoke", "{bob}", "--reason", "superseded", "--note", "A new one."),
        done=2,
        settled=_is_revoked,
    ),
}


def follow(said: str, command: list[str], place: Place, who: str) -> list[str] | None:
    """Do what a refusal says is next, and return what is to be run after that, if anything."""
    told = re.search(r"next: +(.+)", said)
    if told is None:
        return None
    if told[1].startswith("choose another path"):
        return [re.sub(r"(/keys/\w+)$", r"\1x", word) for word in command]
    step = re.sub(r" \(.*| and then .*|, then .*|, which .*", "", told[1]).strip()
    if step.startswith(("rm ", "git ", "cd ")):
        subprocess.run(step, shell=True, cwd=place.study, check=True, capture_output=True)
        return command
    if step.startswith("prereg "):
        words = step.split()[1:]
        if "--key" in words:
            words[words.index("--key") + 1] = place.key(who)
        elif words[0] in ("seal", "collect", "analyse", "audit", "amend", "cosign", "push", "close"):
            words += ["--key", place.key(who)]
        return command if place.run(*words).code == 0 else None
    return None
