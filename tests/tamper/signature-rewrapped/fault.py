"""One signature has one spelling: base64 in lines of 70."""

from pathlib import Path
from types import ModuleType

AT = "sealed"
CAUGHT_BY = ("verify", "collect", "auditor")
NAMED = "manifest.json.sig"


def apply(study: Path, tools: ModuleType) -> None:
    p = study / "seal/manifest.json.sig"
    text = "".join(p.read_text().splitlines()[1:-1])
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    p.write_text("\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""]))
