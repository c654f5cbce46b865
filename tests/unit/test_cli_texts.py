"""Text of the command line that no file can hold, names that no system can, and verbs that others outran."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from prereg.errors import WrongState
from prereg.seal.enter import enter
from prereg.seal.keys import generate_key
from prereg.seal.tell import deviate_study
from prereg.seal.trust import add_signer
from prereg.seal.verified import VerifiedStudy
from tests.unit import study_fixture
from tests.unit.test_cli import PREREG, prereg
from tests.unit.third_fixture import make_third_study

LOOSE, BYTES = "e\u0301".encode(), b"\xff"
"""An accent that is a character of its own, and no UTF-8."""
GIVEN = {
    "key new": (["key", "new", "K/new", "--role", "author"], "--principal"),
    "key add": (["key", "add", "K/k.pub", "--role", "author"], "--principal"),
    "a role": (["key", "add", "K/k.pub", "--principal", "ada"], "--role"),
    "a time": (["key", "add", "K/k.pub", "--principal", "ada", "--role", "author"], "--valid-after"),
    "a note": (["key", "revoke", "K/k.pub", "--reason", "lost"], "--note"),
    "a reason to revoke": (["key", "revoke", "K/k.pub", "--note", "Gone."], "--reason"),
    "a title": (["draft", "x", "--template", "two-arm"], "--title"),
    "a question": (["draft", "x", "--template", "two-arm"], "--question"),
    "an author": (["draft", "x", "--template", "two-arm"], "--author"),
    "a principal": (["draft", "x", "--template", "two-arm"], "--principal"),
    "a template": (["draft", "x"], "--template"),
    "a deviation": (["deviate", "S", "--key", "K/ada"], "--text"),
    "what it is about": (["deviate", "S", "--key", "K/ada", "--text", "x"], "--about"),
    "a signer": (["deviate", "S", "--key", "K/ada", "--text", "x"], "--as"),
    "a reason to close": (["close", "S", "--key", "K/ada"], "--reason"),
    "a reason to amend": (["amend", "S", "--key", "K/ada"], "--reason"),
    "a reason to relocate": (["relocate", "S", "--key", "K/ada", "--from", "K"], "--reason"),
    "a remote": (["push", "S", "--key", "K/ada"], "--remote"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a sealed study S and keys in K."""
    folder = tmp_path_factory.mktemp("texts")
    paths = make_third_study(folder)
    study_fixture.seal(paths)
    key = generate_key(folder / "keys" / "k")
    add_signer(paths.repository, "kim", key.public_line, ["author"])
    (paths.repository / "S").symlink_to(paths.root)
    (paths.repository / "K").symlink_to(folder / "keys")
    return paths.repository


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for top in (folder, folder / "K", folder / "S")
        for path in top.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


@pytest.mark.parametrize("text", [LOOSE, BYTES], ids=["not NFC", "not UTF-8"])
@pytest.mark.parametrize("name", GIVEN)
def test_text_that_no_file_can_hold_is_wrong_use(name: str, text: bytes, place: Path) -> None:
    arguments, option = GIVEN[name]
    before = files(place)
    done = subprocess.run([PREREG, *arguments, option, text], cwd=place, capture_output=True, check=False)
    told = done.stderr.decode()
    assert done.returncode == 2, told
    assert f"where: {option}" in told and "next:" in told
    assert ("NFC" if text == LOOSE else "UTF-8") in told and "Traceback" not in told
    assert files(place) == before


@pytest.mark.parametrize("text", [LOOSE, BYTES], ids=["not NFC", "not UTF-8"])
@pytest.mark.parametrize("given", ["a file", "stdin"])
def test_a_deviation_from_a_file_is_held_to_the_same(
    given: str, text: bytes, place: Path, tmp_path: Path
) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"Caf" + text)
    told = ["--file", str(file)] if given == "a file" else []
    with file.open("rb") as stdin:
        done = subprocess.run(
            [PREREG, "deviate", "S", "--key", "K/ada", *told],
            cwd=place,
            stdin=stdin,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 2, done.stderr
    assert (str(file) if told else "stdin") in done.stderr.decode()


@pytest.mark.parametrize("name", [LOOSE, BYTES], ids=["not NFC", "not UTF-8"])
def test_a_file_may_be_called_anything(name: bytes, place: Path, tmp_path: Path) -> None:
    """Some systems take names apart, and a folder of a user's name is in every path."""
    folder = bytes(tmp_path) + b"/" + name
    Path(folder.decode("utf-8", "surrogateescape")).mkdir()
    key = folder + b"/k"
    for given in ([b"key", b"new", key], [b"key", b"add", key + b".pub"]):
        done = subprocess.run(
            [PREREG, *given, b"--principal", b"p", b"--role", b"author", b"--repository", folder],
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    revoked = [b"key", b"revoke", key + b".pub", b"--reason", b"lost", b"--note", b"Gone."]
    done = subprocess.run([PREREG, *revoked, b"--repository", folder], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["con", "nul", "com1", "aux"])
def test_no_study_is_called_like_a_device(name: str, tmp_path: Path) -> None:
    done = prereg("draft", f"studies/{name}", "--template", "two-arm", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "device" in done.stderr and "next:" in done.stderr
    assert not (tmp_path / "studies").exists()


def test_a_verb_that_another_outran_is_out_of_turn(tmp_path: Path) -> None:
    """It did nothing, and no evidence is at fault."""
    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)
    key = study_fixture.signing_key(paths)

    def overtaken(verified: VerifiedStudy) -> dict[str, object]:
        deviate_study(paths, "First.", key=key, principal="ada@example.org")
        return {"seal": verified.seal, "about": [], "text": "Second."}

    with pytest.raises(WrongState, match="another program added to it") as caught:
        enter(paths, "deviation", overtaken, key=key, principal="ada@example.org", message="x")
    assert caught.value.next_step == "prereg status DIR, and then the same verb again"
    assert paths.ledger.read_text().count('"type":"deviation"') == 1


def test_verbs_at_once_take_turns(tmp_path: Path) -> None:
    paths = make_third_study(tmp_path)
    study_fixture.seal(paths)
    key = str(tmp_path / "keys" / "ada")
    telling = [PREREG, "deviate", str(paths.root), "--key", key, "--text"]
    running = [
        subprocess.Popen([*telling, f"Text {i}."], stderr=subprocess.PIPE, text=True) for i in range(3)
    ]
    ended = [(one.communicate()[1], one.returncode) for one in running]
    assert [code for _, code in ended] == [0, 0, 0], ended
    assert paths.ledger.read_text().count('"type":"deviation"') == 3
    assert prereg("verify", str(paths.root)).returncode == 0
