"""`prereg demo` on the real engine: what `make demo` promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PREREG = str(Path(sys.executable).parent / "prereg")
VERDICTS = {
    "plain": "NOT_REJECTED",
    "stop-string": "FAILS",
    "min-new-tokens": "NOT_REJECTED",
    "guidance": "FAILS",
    "synthid": "FAILS",
}


@pytest.mark.engines
def test_the_demo_finds_what_it_promises(tmp_path: Path) -> None:
    done = subprocess.run(
        [PREREG, "demo", "--folder", str(tmp_path / "demo"), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    rows = {c["id"]: c for c in found["configurations"]}
    assert {name: row["verdict"] for name, row in rows.items()} == VERDICTS
    assert rows["stop-string"]["witnesses"] > 0
    assert rows["guidance"]["D"] > 0.01 and rows["synthid"]["D"] > 0.01
    assert all(row["proposals"] > 0 and row["audit_agrees"] for row in rows.values())
    assert found["audit"] == "AGREES"
    assert {p["status"] for p in found["predictions"]} == {"HELD"}
    page = Path(found["page"])
    assert page.is_file() and "conforms" not in page.read_text()

    study = tmp_path / "demo" / "repository" / "studies" / "demo"
    after = subprocess.run([PREREG, "verify", str(study)], capture_output=True, text=True, check=False)
    assert after.returncode == 0, after.stderr
    sums = subprocess.run(
        ["sha256sum", "--quiet", "-c", "seal/SHA256SUMS"],
        cwd=study,
        capture_output=True,
        text=True,
        check=False,
    )
    assert sums.returncode == 0, sums.stderr
    signers = study.parent.parent / "trust" / "allowed_signers"
    check = (
        f"ssh-keygen -Y verify -f {signers} -I author@example.org -n prereg-seal -s seal/manifest.json.sig"
    )
    signature = subprocess.run(
        check.split(),
        cwd=study,
        input=(study / "seal" / "manifest.json").read_bytes(),
        capture_output=True,
        check=False,
    )
    assert signature.returncode == 0, signature.stderr
