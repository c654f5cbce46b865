"""Stamps of heads on the command line: made, counted, and shown beside a key that was revoked."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths
from tests.unit.signing_fixture import cosign
from tests.unit.study_fixture import git, signing_key
from tests.unit.test_cli import prereg
from tests.unit.test_seal_head_stamps import (
    BETWEEN,
    EARLIER,
    at,
    authority,
    refused,
    sealed,
    sealed_once,
    stolen,
    tell,
    url,
)
from tests.unit.timestamp_fixture import Authority

__all__ = ["authority", "sealed", "sealed_once", "url"]


def test_the_command_line(sealed: StudyPaths, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "no_proxy", "127.0.0.1")
    root, key = str(sealed.root), str(sealed.repository.parent / "keys" / "ada")
    done = prereg("timestamp", root, "--url", url)
    assert done.returncode == 2 and "the key is missing" in done.stderr and "--head" in done.stderr
    nothing: dict[str, object] = {"entries": 1, "stamped": 0, "time": None, "signers": []}
    assert json.loads(prereg("status", root, "--json").stdout)["head_stamps"] == nothing
    assert "head stamps  none of 1 entry" in prereg("status", root).stderr
    done = prereg("timestamp", root, "--head", "--url", "http://127.0.0.1:9/")
    assert done.returncode == 3
    assert done.stderr.rstrip().endswith(f"prereg timestamp {root} --head --url http://127.0.0.1:9/")
    done = prereg("timestamp", root, "--head", "--url", url, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["entry"] == 1 and told["commit"] == git(sealed.repository, "rev-parse", "HEAD").strip()
    assert "Stamped already: the head of" in prereg("timestamp", root, "--head", "--url", url).stderr
    shown = json.loads(prereg("status", root, "--json").stdout)["head_stamps"]
    own = {"principal": "ada@example.org", "key": signing_key(sealed).fingerprint, "stamped": 1}
    assert shown == {"entries": 1, "stamped": 1, "time": told["time"], "signers": [own]}
    assert f"up to entry 1 of 1, {told['time']}" in prereg("status", root).stderr
    steps = json.loads(prereg("verify", root, "--json").stdout)["steps"]
    assert f"1 stamp of heads, the last of entry 1, {told['time']}" in steps[5]["detail"]
    assert prereg("deviate", root, "--text", "x", "--key", key).returncode == 0
    assert "up to entry 1 of 2" in prereg("status", root).stderr


def test_a_revoked_key_is_shown_with_its_stamps(sealed: StudyPaths, authority: Authority) -> None:
    root = str(sealed.root)
    at(authority, sealed, EARLIER)  # ada's head
    cosign(sealed, "bob")
    at(authority, sealed, EARLIER)  # bob's
    tell(sealed)
    assert "REVOKED" not in prereg("status", root).stderr
    stolen(sealed, "ada", BETWEEN)
    said = " ".join(prereg("status", "studies/coin", cwd=sealed.repository).stderr.split())
    assert "up to entry 2 of 3" in said
    assert "ada@example.org's up to 1, bob@example.org's up to 2" in said
    assert f"of ada@example.org: compromised, {BETWEEN:%Y-%m-%d}" in said
    assert "prereg verify studies/coin says what still counts" in said
    shown = json.loads(prereg("status", root, "--json").stdout)["revoked"]
    assert [(r["principals"], r["reason"]) for r in shown] == [(["ada@example.org"], "compromised")]
    detail = verify_report(sealed)[5].detail
    assert "revoked as compromised" in detail or "was revoked at" in detail
    assert "; stamps of this key's heads reach up to entry 1 of 3" in detail
    refused(sealed, 6, "reach up to entry 1 of 3")
    shutil.rmtree(sealed.stamps / "1")
    assert "no stamp of this key's heads is older than that" in verify_report(sealed)[5].detail
