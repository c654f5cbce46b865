"""What `seal` and `amend` do first: check, rehearse, and take the fingerprint of each environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prereg.cli.output import say

if TYPE_CHECKING:
    from prereg.cli.signing import Actor
    from prereg.model.image import Image
    from prereg.seal.standing import Standing
    from prereg.store.layout import StudyPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Who signs, and in what the study will run."""

    who: Actor
    edition: int
    environments: Mapping[str, str]
    """The fingerprint of each build."""
    images: Mapping[str, Image] | None
    """The image of each build, where workers run in containers."""


def prepare(
    paths: StudyPaths,
    folder: Path,
    key: str,
    principal: str | None,
    *,
    quiet: bool,
    refuse: Callable[[], None] = lambda: None,
) -> Ready:
    """Whatever must hold before a signature. Raises UsageError for a study that `check` refuses.

    Key, signer and `refuse` come before the rehearsal and the fingerprints, which may take minutes.
    """
    from prereg.cli.check import require_ok, require_rehearsed, run_check, run_rehearsal, show, show_rehearsal
    from prereg.cli.signing import actor
    from prereg.collect.environments import fingerprints
    from prereg.collect.image import images_for_seal
    from prereg.seal.bind import refuse_signer
    from prereg.store.ledger import timestamp

    report = run_check(paths)
    if not report.ok and not quiet:
        show(report)
    require_ok(report, str(folder))
    assert report.study is not None
    who = actor(paths, key, principal, draft=True)
    refuse_signer(paths, who.key, who.principal, timestamp())
    refuse()
    tried = run_rehearsal(paths, report)
    if not quiet:
        show_rehearsal(tried)
    require_rehearsed(tried, str(folder))
    say("Taking the fingerprint of each environment.")
    protocol = report.study.protocol
    builds = [c.build for c in protocol.configurations]
    if protocol.runtime == "container":
        environments, images = images_for_seal(builds)
    else:
        environments, images = fingerprints(builds), None
    return Ready(who=who, edition=protocol.edition or 1, environments=environments, images=images)


def show_standing(after: Standing) -> None:
    """How far a seal is, where its protocol asks for more than the author's signature."""
    if after.signatures is not None:
        say(f"  signed  {after.signatures}")
    if after.stamp.state != "none":
        say(f"  stamp   {after.stamp}")


def next_verb(after: Standing | None, folder: Path, key: str) -> str:
    """The command that follows a seal, an amendment, a signature or a stamp."""
    verb = None if after is None else after.verb
    if verb == "prereg cosign":
        return f"{verb} {folder} --key KEY, by another of its signers"
    url = " --url URL" if verb == "prereg timestamp" else ""
    return f"{verb or 'prereg collect'} {folder}{url} --key {key}"
