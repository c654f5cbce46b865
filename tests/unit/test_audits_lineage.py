"""Amendments: the seals before the present one, in the folder, the ledger and the history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from audits_kit import failed, look, make_keys
from audits_plan import Plan
from audits_seals import Sealed, Step, amend, build, cosign, enter, rewrite, second, well
from audits_tools import make_key, run, sha, sign

STEM = "records/main.probe.on/00001"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_keys(tmp_path_factory.mktemp("audit-keys"))
    make_key(folder, "third")
    return folder


def test_a_study_that_was_amended_twice(tmp_path: Path, keys: Path) -> None:
    builder = build(tmp_path, keys, second(), amend(), amend(lambda b: b.write("more.txt", b"x")))
    assert "state collected" in well(builder)
    outcome = look(builder.folder)
    assert outcome.steps[2].applied > 2 * len(builder.manifest["files"])
    assert outcome.steps[4].applied == 3
    assert outcome.seal == builder.digest


def test_an_amendment_makes_the_state_sealed(tmp_path: Path, keys: Path) -> None:
    plan = second(upto="sealed")
    text = well(build(tmp_path, keys, plan, amend(), enter("pushed", remote="r", ref="r", commit="0" * 40)))
    assert "state sealed" in text


def _in_lineage(name: str, data: bytes | None) -> Step:
    def step(b: Sealed) -> None:
        home = next(iter(sorted((b.folder / "seal/lineage").iterdir())))
        path = (home / name).relative_to(b.folder).as_posix()
        rewrite(path, data)(b)

    return step


def _signed_by_another(b: Sealed) -> None:
    home = next((b.folder / "seal/lineage").iterdir())
    signature = sign(b.keys / "stranger", (home / "manifest.json").read_bytes(), "prereg-seal")
    (home / "manifest.json.sig").write_bytes(signature)
    b.commit("another signature")


def _changed(name: str, key: str, value: Any) -> Plan:
    """A plan that says something else in the manifest or entry of an amendment."""

    def edit(kind: str, said: Any) -> Any:
        if kind == name and (name != "manifest" or "amends" in said):
            return said | {key: value}
        return said

    return second(edit)


def _made_late() -> Plan:
    """A plan whose first manifest, which is amended, says that it was made after its entry."""

    def edit(kind: str, said: Any) -> Any:
        late = kind == "manifest" and "amends" not in said
        return said | {"created": "2026-11-29T10:00:02.000000+00:00"} if late else said

    return second(edit)


LINEAGE: dict[str, tuple[Plan, tuple[Step, ...], int, str]] = {
    "a manifest made after its entry": (_made_late(), (amend(),), 6, "line 1#/time: is before the manifest"),
    "a manifest lost": (second(), (amend(), _in_lineage("manifest.json", None)), 2, "missing"),
    "a signature lost": (second(), (amend(), _in_lineage("manifest.json.sig", None)), 2, "missing"),
    "sums lost": (second(), (amend(), _in_lineage("SHA256SUMS", None)), 2, "missing"),
    "sums changed": (second(), (amend(), _in_lineage("SHA256SUMS", b"x\n")), 2, "does not say"),
    "a manifest changed": (second(), (amend(), _in_lineage("manifest.json", b"{}\n")), 2, "misses"),
    "something beside": (second(), (amend(), _in_lineage("notes", b"x")), 2, "no seal that the present"),
    "a request alone": (second(), (amend(), _in_lineage("timestamp.tsq", b"x")), 2, "and not both"),
    "another's folder": (
        second(), (amend(), rewrite(f"seal/lineage/{'0' * 64}/manifest.json", b"x")), 2, "no seal that",
    ),
    "a lineage of nothing": (
        second(), (rewrite(f"seal/lineage/{'0' * 64}/manifest.json", b"x"),), 2, "no seal that",
    ),
    "a signature of another": (second(), (amend(), _signed_by_another), 4, "not an allowed key"),
    "the manifest amends another": (_changed("manifest", "amends", "0" * 64), (amend(),), 2, "missing"),
    "the manifest amends nothing": (
        second(lambda k, v: {x: v[x] for x in v if x != "amends"} if k == "manifest" else v), (amend(),), 2,
        "is not what the ledger's",
    ),
    "the entry names another before": (
        _changed("amended body", "previous", "0" * 64), (amend(),), 6, "not the seal in force before",
    ),
    "the entry names another seal": (
        _changed("amended body", "seal", "0" * 64), (amend(),), 2, "is not what the ledger's",
    ),
    "the entry has another signature": (
        _changed("amended body", "signature_sha256", "0" * 64), (amend(),), 6, "/body/signature_sha256",
    ),
    "the entry has another commit": (
        _changed("amended body", "commit", "0" * 40), (amend(),), 6, "/body/commit",
    ),
    "another study": (_changed("manifest", "study", "other"), (amend(),), 2, "does not change it"),
    "before it was made": (
        _changed("manifest", "created", "2027-01-01T00:00:00+00:00"), (amend(),), 6, "before the manifest",
    ),
    "no entry": (second(), (lambda b: _unentered(b),), 2, "is not what the ledger's"),
    "edition 1": (Plan(upto="collected"), (amend(),), 5, "#/amends"),
}  # fmt: skip


def _unentered(b: Sealed) -> None:
    """An amendment that the ledger has not."""
    lines = list(b.lines)
    amend()(b)
    b.lines = lines
    b.write("ledger.jsonl", b"".join(lines))
    b.head("author")
    b.commit("no entry")


@pytest.mark.parametrize("name", LINEAGE)
def test_a_lineage_that_is_not_whole(tmp_path: Path, keys: Path, name: str) -> None:
    plan, steps, number, says = LINEAGE[name]
    found = failed(look(build(tmp_path, keys, plan, *steps).folder))
    assert number in found, found
    assert says in found[number]


def test_records_come_after_the_last_amendment_in_history(tmp_path: Path, keys: Path) -> None:
    """The collector's records were committed before the seal that they name."""

    def early(b: Sealed) -> None:
        b.write(f"{STEM}.jsonl.gz", b"early")
        b.commit("early records")

    found = failed(look(build(tmp_path, keys, second(), early, amend()).folder))
    assert "does not come after the seal" in found[9]


def _entered_too(cut: int) -> Step:
    """The commit of the seal has an entry after the seal's own, without its last bytes where some are cut."""

    def step(b: Sealed) -> None:
        number = len(list((b.folder / "seal").glob("lineage/*")))
        b.entry(
            "pushed", "ann@example.org", {"seal": b.digest, "remote": "r", "ref": "r", "commit": "0" * 40}
        )
        b.head("author")
        whole = b"".join(b.lines)
        b.write("ledger.jsonl", whole[: len(whole) - cut])
        run("git", "add", "-A", cwd=b.root)
        run("git", "commit", "-q", "--amend", "--no-edit", cwd=b.root)
        b.tag(f"amended-{number}" if number else "sealed")
        b.write("ledger.jsonl", whole)
        b.commit("the ledger is whole")

    return step


@pytest.mark.parametrize("cut", [0, 10])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_commit_of_no_seal_has_later_entries(tmp_path: Path, keys: Path, at: int, cut: int) -> None:
    """Neither that of the first seal, nor that of any amendment, the present one or not."""
    steps: list[Step] = [amend(), amend(lambda b: b.write("more.txt", b"x"))]
    steps.insert(at, _entered_too(cut))
    builder = build(tmp_path, keys, second(upto="sealed"), *steps)
    found = failed(look(builder.folder))
    assert set(found) == {9}
    added = run(
        "git", "log", "--reverse", "--format=%H", "--", "studies/tiny/seal/manifest.json", cwd=builder.root
    )
    says = f"commit {added.decode().split()[at]} adds the seal and already has later entries"
    assert found[9].count("later entries") == 1 and says in found[9]


@pytest.mark.parametrize("at", [0, 1])
def test_another_mode_adds_no_seal_of_a_lineage_again(tmp_path: Path, keys: Path, at: int) -> None:
    """Neither the first seal's manifest nor the amended one's, whose bytes the commit's parent has."""

    def other_mode(b: Sealed) -> None:
        manifest = b.folder / "seal/manifest.json"
        manifest.chmod(0o755)
        b.commit("another mode")
        manifest.chmod(0o644)
        b.commit("and back")

    steps: list[Step] = [amend()]
    steps.insert(at, other_mode)
    builder = build(tmp_path, keys, second(upto="sealed"), *steps)
    assert run("git", "log", "--format=%H", "--grep=another mode", cwd=builder.root)
    well(builder)


def test_the_head_of_an_amended_seal_is_checked_in_history(tmp_path: Path, keys: Path) -> None:
    """What somebody else wrote before the amendment was signed by that person."""
    signers = {"signers": {"need": 1, "principals": ["ann@example.org", "bob@example.org"]}}
    builder = build(tmp_path, keys, second(**signers), cosign(), amend())
    well(builder)

    def wrong(b: Sealed) -> None:
        data = (b.folder / "ledger.head.json.sig").read_bytes()
        b.write("ledger.head.json.sig", b"x")
        b.commit("a head that is not signed")
        b.write("ledger.head.json.sig", data)
        b.commit("and again")

    found = failed(look(build(tmp_path / "2", keys, second(), wrong, amend()).folder))
    assert set(found) == {9} and "not sound" in found[9]


def test_an_amended_study_of_the_fixture_says_what_its_ledger_says(tmp_path: Path, keys: Path) -> None:
    """The kit itself: the trailers name the seal in force and the last line."""
    builder = build(tmp_path, keys, second(), amend())
    told = [json.loads(line)["type"] for line in builder.lines]
    assert told[:3] == ["sealed", "amended", "collection-started"]
    message = run("git", "log", "-1", "--format=%B", cwd=builder.root).decode()
    assert f"Prereg-Ledger-Head: {sha(builder.lines[-1])}" in message


def _edition_from_amendment(*editions: int | None) -> tuple[Plan, list[Step]]:
    """A plan whose first seal is of the first of these editions, and the amendments to the others."""

    def edit(name: str, value: Any) -> Any:
        if name == "protocol.json" and editions[0] is None:
            value = {key: value[key] for key in value if key != "edition"}
        return value

    def to(edition: int | None) -> Step:
        def step(b: Sealed) -> None:
            value = json.loads((b.folder / "protocol.json").read_bytes())
            value.pop("edition", None)
            value |= {} if edition is None else {"edition": edition}
            b.write("protocol.json", json.dumps(value).encode())

        return amend(step)

    return second(edit, upto="sealed"), [to(edition) for edition in editions[1:]]


def test_an_amendment_keeps_the_edition(tmp_path: Path, keys: Path) -> None:
    plan, steps = _edition_from_amendment(2, 2, 2)
    well(build(tmp_path / "same", keys, plan, *steps))
    plan, steps = _edition_from_amendment(None, 2)
    found = failed(look(build(tmp_path / "newer", keys, plan, *steps).folder))
    assert set(found) == {9}
    assert "protocol.json#/edition: " in found[9]
    assert "is of another edition, 2, than the one before, 1" in found[9]
    plan, steps = _edition_from_amendment(2, None, 2)
    found = failed(look(build(tmp_path / "there and back", keys, plan, *steps).folder))
    assert set(found) == {9}
    assert "is of another edition, 1, than the one before, 2" in found[9]
    assert "is of another edition, 2, than the one before, 1" in found[9]


def test_the_protocol_that_an_amended_seal_was_committed_with_is_the_sealed_one(
    tmp_path: Path, keys: Path
) -> None:
    """Otherwise the commit of a seal could show a protocol of another edition, which was never sealed."""

    def committed_with(data: bytes | None) -> Step:
        def step(b: Sealed) -> None:
            amend()(b)
            sealed = (b.folder / "protocol.json").read_bytes()
            if data is None:
                (b.folder / "protocol.json").unlink()
            else:
                b.write("protocol.json", data)
            run("git", "add", "-A", cwd=b.root)
            run("git", "commit", "-q", "--amend", "--no-edit", cwd=b.root)
            b.tag("amended-1")
            b.write("protocol.json", sealed)
            b.commit("the protocol is back")

        return step

    for name, data in {"other": b'{"edition":2}', "none": None}.items():
        builder = build(tmp_path / name, keys, second(upto="sealed"), committed_with(data))
        found = failed(look(builder.folder))
        assert set(found) == {9}
        assert "adds the seal" in found[9] and "protocol.json: commit" in found[9]
