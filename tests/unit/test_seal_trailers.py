"""Trailers of commits and tags of seals: what they say of a study is so (docs/formats.md section 19)."""

from __future__ import annotations

import pytest

from prereg.codec.canonical import digest
from prereg.seal.trailers import trailers_of
from prereg.seal.verify import verify_report
from prereg.store.layout import StudyPaths
from prereg.store.ledger import head_of
from prereg.store.repo import Repo
from tests.unit.seal_kit import fails
from tests.unit.study_fixture import git


def say(paths: StudyPaths, *trailers: str, body: str = "Words.\n\n") -> None:
    """An empty commit with those trailers; `SEAL` and `LINE` stand for what is right."""
    seal = Repo.find(paths.root).tag("prereg/coin/sealed")
    assert seal is not None
    right = {
        "SEAL": seal.message.split("Prereg-Seal: ")[1][:64],
        "LINE": head_of(paths.ledger.read_bytes()),
    }
    text = "".join(f"{line}\n" for line in trailers)
    for name, value in right.items():
        text = text.replace(name, value)
    git(
        paths.repository, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", f"Some\n\n{body}{text}"
    )


STUDY, SEAL, LINE = "Prereg-Study: coin", "Prereg-Seal: SEAL", "Prereg-Ledger-Head: LINE"
ALLOWED = [
    (STUDY, SEAL, LINE),
    (LINE, "Reviewed-by: Rex", SEAL, STUDY),
    ("Prereg-Study: other", "Prereg-Seal: " + "0" * 64),
    ("Prereg-Seal: " + "0" * 64,),
]
REFUSED = [
    ((STUDY,), "0 trailers Prereg-Seal"),
    ((STUDY, SEAL), "0 trailers Prereg-Ledger-Head"),
    ((STUDY, SEAL, SEAL, LINE), "2 trailers Prereg-Seal"),
    ((STUDY, SEAL, LINE, "Prereg-Ledger-Head: " + "0" * 64), "2 trailers Prereg-Ledger-Head"),
    ((STUDY, "Prereg-Seal: " + "0" * 64, LINE), "no seal of this study"),
    ((STUDY, SEAL, "Prereg-Ledger-Head: " + "0" * 64), "digest of no line"),
    (("Prereg-Study: other", STUDY, LINE), "0 trailers Prereg-Seal"),
    (("PREREG-study : coin\r", SEAL, LINE, "prereg-seal: SEAL"), "2 trailers Prereg-Seal"),
    (("(words)", STUDY, LINE), "0 trailers Prereg-Seal"),
    ((STUDY, "Note: a\x01b", "Prereg-Seal: " + "0" * 64, LINE), "no seal of this study"),
]


@pytest.mark.parametrize("trailers", ALLOWED)
def test_what_a_commit_says_may_be_so_or_of_another_study(
    sealed: StudyPaths, trailers: tuple[str, ...]
) -> None:
    say(sealed, *trailers)
    assert verify_report(sealed)[8].status == "ok"


@pytest.mark.parametrize(("trailers", "what"), REFUSED)
def test_a_commit_that_says_otherwise_is_refused(
    sealed: StudyPaths, trailers: tuple[str, ...], what: str
) -> None:
    say(sealed, *trailers)
    error = fails(sealed, 9, what)
    assert error.where == f"commit {git(sealed.repository, 'rev-parse', 'HEAD')[:12]}"


def test_words_in_the_middle_of_a_message_are_no_trailer(sealed: StudyPaths) -> None:
    say(sealed, "Reviewed-by: Rex", body=f"{STUDY}\n\n")
    assert verify_report(sealed)[8].status == "ok"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trailer.separators", "#"),
        ("core.commentChar", "P"),
        ("core.commentString", "Prereg"),
        ("trailer.P.key", "Q"),
        ("i18n.logOutputEncoding", "UTF-16"),
        ("log.showRoot", "false"),
    ],
)
def test_a_setting_of_the_repository_does_not_hide_a_trailer(
    sealed: StudyPaths, name: str, value: str
) -> None:
    say(sealed, STUDY)
    git(sealed.repository, "config", name, value)
    fails(sealed, 9, "0 trailers Prereg-Seal")


TRAILERS = [
    ("", {}),
    ("A: b", {}),
    ("A: b\nC: d\n\n \n", {}),
    ("x\n\nA: b\n\nwords", {}),
    ("\n\nx\n\nwords\nA: b:c\na:d\n# E: f\n\n", {"a": ["b:c", "d"], "# e": ["f"]}),
    ("x\n \nA:\n b\n", {"a": [""]}),
    ("x\x85\n\nA: b\x0bC: d", {"a": ["b\x0bC: d"]}),
]


@pytest.mark.parametrize(("message", "expected"), TRAILERS)
def test_a_trailer_is_a_line_of_the_last_paragraph_that_is_not_the_first(
    message: str, expected: dict[str, list[str]]
) -> None:
    assert trailers_of(message) == expected


def test_a_commit_before_the_seal_may_say_what_it_likes(sealed: StudyPaths) -> None:
    git(sealed.repository, "tag", "-d", "prereg/coin/sealed")
    tree = git(sealed.repository, "rev-parse", "HEAD~1^{tree}").strip()
    early = git(sealed.repository, "commit-tree", tree, "-p", "HEAD~1", "-m", f"Early\n\n{STUDY}\n").strip()
    git(sealed.repository, "merge", "-q", "--no-ff", "-m", "Merge", early)
    assert verify_report(sealed)[8].status == "ok"


TAGS = [
    (("sealed",), "HEAD~1", "is on no commit that holds seal/manifest.json"),
    (("sealed",), "HEAD:studies", "is on no commit"),
    (("amended-1",), "HEAD", "there is no such amendment"),
    (("amended-0",), "HEAD", "there is no such amendment"),
    (("amended-x",), "HEAD", "there is no such amendment"),
]


@pytest.mark.parametrize(("names", "target", "what"), TAGS)
def test_a_tag_on_another_seal_is_refused(
    sealed: StudyPaths, names: tuple[str, ...], target: str, what: str
) -> None:
    for name in names:
        git(sealed.repository, "tag", "-f", f"prereg/coin/{name}", target)
    error = fails(sealed, 9, what)
    assert error.where == f"tag prereg/coin/{names[0]}"


SAID = [
    ("", None),
    ("Prereg-Seal: SEAL", None),
    (
        f"Prereg-Seal: SEAL\nprereg-seal: {'0' * 64}\nPrereg-Ledger-Head: LINE",
        "trailer Prereg-Seal is not the seal",
    ),
    (
        f"Prereg-Seal: {'0' * 64}\nPrereg-Ledger-Head: LINE",
        "trailer Prereg-Seal is not the seal of that name",
    ),
    (f"Prereg-Seal: SEAL\nPrereg-Ledger-Head: {'0' * 64}", "digest of no line"),
    ("Prereg-Seal: SEAL\nPREREG-LEDGER-head: LINE", None),
]


@pytest.mark.parametrize(("text", "what"), SAID)
def test_what_a_tag_says_is_so(sealed: StudyPaths, text: str, what: str | None) -> None:
    text = text.replace("SEAL", digest(sealed.manifest.read_bytes()))
    text = text.replace("LINE", head_of(sealed.ledger.read_bytes()))
    git(sealed.repository, "config", "core.commentChar", "P")
    tag = ("tag", "-f", "--cleanup=verbatim", "-m", f"Sealed coin\n\n{text}\n", "prereg/coin/sealed")
    git(sealed.repository, *tag)
    if what is None:
        assert verify_report(sealed)[8].status == "ok"
    else:
        assert fails(sealed, 9, what).where == "tag prereg/coin/sealed"


def test_a_tag_that_did_not_travel_is_not_asked_for(sealed: StudyPaths) -> None:
    git(sealed.repository, "tag", "-d", "prereg/coin/sealed")
    git(sealed.repository, "tag", "prereg/coin/published")
    git(sealed.repository, "tag", "prereg/coin-two/sealed", "HEAD~1")
    assert "1 commit names the study, 0 tags; HEAD holds " in verify_report(sealed)[8].detail
