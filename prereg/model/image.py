"""The image of a build, as a seal names it (docs/formats.md section 20)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Three digests, each `sha256:` and 64 hex digits."""

    image: str
    """Of the image's manifest."""
    platform: str
    """Of the manifest for this platform; the same where the image is for one."""
    id: str
    """Of the image's configuration, by which it is run."""
