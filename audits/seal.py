"""Steps 1 to 3: the folder, the manifest, and the files it lists."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from audits import RULES
from audits.fault import Fault, Found
from audits.load import LONGEST, SMALL, Folder, moment
from audits.schema import Schema

MANIFEST = "seal/manifest.json"
SIGNATURE = "seal/manifest.json.sig"
SUMS = "seal/SHA256SUMS"
_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_RECORD = re.compile(rf"records/{_NAME}\.{_NAME}\.{_NAME}/[0-9]{{5}}\.(jsonl\.gz|meta\.json)")
_UNIT = re.compile(rf"records/{_NAME}\.{_NAME}\.{_NAME}")
_AGAIN = rf"records/{_NAME}\.{_NAME}\.{_NAME}(\.attempt-[2-9])?"
_RECORD_3 = re.compile(rf"{_AGAIN}/[0-9]{{5}}\.((duplicate-[1-9][0-9]{{0,8}}\.)?jsonl\.gz|meta\.json)")
_UNIT_3 = re.compile(_AGAIN)
"""The same of edition 3: attempts after the first have folders of their own, and second results are kept."""
_PRINCIPAL = r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,127}"
_BESIDE = re.compile(
    rf"seal/(lineage/[0-9a-f]{{64}}/)?(timestamp\.ts[qr]|cosign/{_PRINCIPAL}\.sig)"
    r"|seal/lineage/[0-9a-f]{64}/(manifest\.json(\.sig)?|SHA256SUMS)"
)
"""What may lie in ``seal/`` beside the present seal's own files; steps 2 and 4 say whether it should."""
_KNOWN = {
    MANIFEST, SIGNATURE, SUMS, "ledger.jsonl", "ledger.head.json", "ledger.head.json.sig",
    "analysis/decisions.json", "audit/report.json", "audit/report.json.sig",
}  # fmt: skip
_STAMP = re.compile(r"stamps/[1-9][0-9]{0,15}/(ledger\.head\.json(\.sig)?|timestamp\.ts[qr])")
"""What may lie in ``stamps/`` in edition 3; step 6 says whether it should."""
_FOLDERS = {"seal", "records", "analysis", "audit", "report"}
_FOLDERS_3 = _FOLDERS | {"stamps"}
_RESERVED = ("seal/", "records/", "stamps/", "analysis/", "audit/", "report/", "ledger.")
_SIGNS = frozenset('<>:"|?*')
_DEVICES = re.compile(r"con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]")
"""Names that some system reserves, in lower case."""


def check_folder(folder: Folder, listed: set[str] | None, found: Found, third: bool = False) -> None:
    """Step 1: only regular files, at places the manifest lists or this page knows.

    ``third`` says that the study is of edition 3, as far as can be told here.
    """
    record, unit, folders = (_RECORD_3, _UNIT_3, _FOLDERS_3) if third else (_RECORD, _UNIT, _FOLDERS)
    beyond = [path for path, entry in folder.entries.items() if entry.kind == "beyond"]
    for path in beyond:
        what = f"something lies below it at a path of more than {LONGEST} characters, the most of a manifest"
        found.fault(what, file=f"{path[:80]}…")
    inside: set[str] = set()
    """The folders that a file lies below."""
    for path in [*folder.files(), *beyond]:
        while "/" in path and (path := path.rpartition("/")[0]) not in inside:
            inside.add(path)
    for path, entry in folder.entries.items():
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            found.fault("a name that is not UTF-8", file=path)
            continue
        if entry.kind in ("link", "special"):
            found.fault("a link" if entry.kind == "link" else "not a regular file", file=path)
        elif entry.kind == "folder":
            if path not in inside and path not in folders and not unit.fullmatch(path):
                found.fault("an empty folder that nothing lists", file=path)
        elif entry.kind == "file":
            found.applied += 1
            if entry.names > 1:
                then = "put a copy in its place"
                found.fault(f"a hard link: the file has {entry.names} names", file=path, then=then)
            known = path in _KNOWN or record.fullmatch(path) or _BESIDE.fullmatch(path)
            stamp = third and _STAMP.fullmatch(path)
            if not (known or stamp) and listed is not None and path not in listed:
                found.fault("not listed in the manifest, and not at a known place", file=path)


def reserved(name: str) -> bool:
    """Whether some system reserves a name of a file or a folder (section 3)."""
    return _DEVICES.fullmatch(name.partition(".")[0].rstrip(" ").casefold()) is not None


def _unsafe(path: str) -> str | None:
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "has an empty, `.` or `..` part"
    if "\\" in path or any(unicodedata.category(c) == "Cc" for c in path):
        return "has a backslash or a control character"
    for part in path.split("/"):
        if part.endswith((".", " ")) or _SIGNS & set(part):
            return "has a part that ends with a dot or a space, or has a sign that some system does not take"
        if reserved(part):
            return "has a part that some system reserves"
    if path.startswith(_RESERVED) or path in _FOLDERS_3:
        return "is at a place the manifest does not cover"
    return None


def check_manifest(folder: Folder, schema: Schema, found: Found) -> dict[str, Any]:
    """Step 2: the manifest is canonical, of its schema, and its paths are safe."""
    manifest: dict[str, Any] = folder.machine(MANIFEST)
    schema.check(manifest, MANIFEST)
    moment(manifest["created"], MANIFEST, "/created")
    if manifest["rules"] != RULES:
        found.fault(f"sealed under rules {manifest['rules']}; this auditor has {RULES}", file=MANIFEST)
    check_paths(manifest, MANIFEST, found)
    return manifest


def check_paths(manifest: dict[str, Any], file: str, found: Found) -> None:
    """The paths of a manifest are safe, different, and in order."""
    paths = [item["path"] for item in manifest["files"]]
    folded: set[str] = set()
    for i, path in enumerate(paths):
        pointer = f"/files/{i}/path"
        if why := _unsafe(path):
            found.fault(f"path {path!a} {why}", file=file, pointer=pointer)
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        if key in folded:
            found.fault(f"path {path!a} is there twice, but for letter case", file=file, pointer=pointer)
        folded.add(key)
        found.applied += 1
    if paths != sorted(paths):
        found.fault("files are not sorted by path", file=file, pointer="/files")


def sums(manifest: dict[str, Any], digest: str) -> bytes:
    """The ``SHA256SUMS`` of a manifest with this digest."""
    lines = [f"{item['sha256']}  {item['path']}\n" for item in manifest["files"]]
    return "".join([*lines, f"{digest}  {MANIFEST}\n"]).encode()


def check_files(folder: Folder, manifest: dict[str, Any], found: Found) -> set[str]:
    """Step 3: every listed file has its size, mode and digest; returns the paths that do not."""
    bad: set[str] = set()
    for i, item in enumerate(manifest["files"]):
        path, pointer = item["path"], f"/files/{i}"
        found.applied += 1
        before = len(found.faults)
        try:
            # A checkout that turned every line end into CRLF at most doubles a file.
            read = folder.read(path, 2 * item["size"] + SMALL)
        except Fault as fault:
            found.faults.append(fault)
        else:
            if read.digest != item["sha256"]:
                crlf = read.data.replace(b"\r\n", b"\n") != read.data
                why = "; its line ends are CRLF, a checkout may have converted them" if crlf else ""
                found.fault(f"its bytes are not those of {MANIFEST}#{pointer}{why}", file=path)
            elif read.mode != item["mode"]:
                found.fault(f"has mode {read.mode}, sealed as {item['mode']}", file=path)
        if len(found.faults) > before:
            bad.add(path)
    listed = {item["path"] for item in manifest["files"]}
    for path in folder.files():
        if path not in listed and not path.startswith(_RESERVED):
            found.fault("in the sealed folder, but not in the manifest", file=path)
    try:
        if folder.read(SUMS).data != sums(manifest, folder.read(MANIFEST).digest):
            found.fault("does not say what the manifest says", file=SUMS)
    except Fault as fault:
        found.faults.append(fault)
    return bad
