"""What a running container really is: told by the engine, and seen from inside.

A command line says what was asked for. Before a worker draws, its container is held against the sandbox;
every difference has a name, and one is enough to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prereg.collect.container import PIDS, SCRATCH, STUDY, USER, EngineName, Sandbox
from prereg.collect.network import PROBE

# Messages between processes, in memory and gone with the container, are no files.
_NO_FILES = frozenset({"/dev/mqueue"})

LOOK = (
    f"WAY_OUT = {PROBE!r}\n"
    + """
import json, os, subprocess, sys
status = {}
with open("/proc/1/status") as lines:
    for line in lines:
        name, _, value = line.partition(":")
        status[name] = value.split()
with open("/proc/self/mounts") as lines:
    places = [line.split()[1] for line in lines]
with open("/proc/net/dev") as lines:
    interfaces = [line.partition(":")[0].strip() for line in list(lines)[2:]]
way_out = subprocess.run([sys.executable, "-I", "-c", WAY_OUT], capture_output=True)
print(json.dumps({
    "uid": status["Uid"], "gid": status["Gid"], "groups": status.get("Groups", []),
    "capabilities": [status[name][0] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no_new_privileges": status.get("NoNewPrivs"),
    "writable": [place for place in places
                 if (os.path.isdir(place) or os.path.isfile(place)) and os.access(place, os.W_OK)],
    "interfaces": interfaces,
    "way_out": way_out.returncode,
}))
"""
)
"""A program that prints, as JSON, what the container's first process may do; it tries for a way out."""


def outside_faults(engine: EngineName, told: Mapping[str, Any], sandbox: Sandbox) -> list[str]:
    """Where what the engine says of a container (`inspect`) is not the sandbox; empty if nowhere."""
    state, config, host = _part(told, "State"), _part(told, "Config"), _part(told, "HostConfig")
    found = []

    def want(what: str, now: object, wanted: object) -> None:
        if now != wanted:
            found.append(f"its {what} is {now!r}, not {wanted!r}")

    image = str(told.get("Image", ""))
    want("image", image if image.startswith("sha256:") else f"sha256:{image}", sandbox.image)
    want("state", state.get("Running"), True)
    want("network", host.get("NetworkMode"), "none")
    want("read-only root", host.get("ReadonlyRootfs"), True)
    want("privilege", host.get("Privileged"), False)
    want("user", config.get("User"), f"{USER}:{USER}")
    want("memory", host.get("Memory"), sandbox.memory)
    want("memory with swap", host.get("MemorySwap"), sandbox.memory)
    want("number of processes", host.get("PidsLimit"), PIDS)
    want("added capabilities", host.get("CapAdd") or [], [])
    if engine == "podman":
        want("capabilities", [*(told.get("EffectiveCaps") or []), *(told.get("BoundingCaps") or [])], [])
        want("longest life", config.get("Timeout"), sandbox.seconds)
    else:
        want("dropped capabilities", host.get("CapDrop"), ["ALL"])
    if not {"no-new-privileges", "no-new-privileges:true"} & set(host.get("SecurityOpt") or []):
        found.append("it may gain privileges")
    for space in ("PidMode", "IpcMode", "UTSMode"):
        if str(host.get(space, "")) == "host":
            found.append(f"its {space} is the host's")
    return [*found, *_mount_faults(told, host, sandbox)]


def _mount_faults(told: Mapping[str, Any], host: Mapping[str, Any], sandbox: Sandbox) -> list[str]:
    mounts = {str(mount.get("Destination")): mount for mount in told.get("Mounts") or []}
    # Podman lists memory apart, docker among the mounts.
    memory = {*(host.get("Tmpfs") or {}), *(p for p, m in mounts.items() if m.get("Type") == "tmpfs")}
    found = []
    if memory != {SCRATCH}:
        found.append(f"its writable memory is at {sorted(memory)}, not at {SCRATCH} alone")
    binds = {place: mount for place, mount in mounts.items() if mount.get("Type") != "tmpfs"}
    if set(binds) != {STUDY}:
        found.append(f"it mounts {sorted(binds)}, not {STUDY} alone")
    for place, mount in binds.items():
        if mount.get("RW") is not False:
            found.append(f"it may write to {place}")
        if place == STUDY and mount.get("Source") != str(sandbox.study):
            found.append(f"{place} is {mount.get('Source')}, not {sandbox.study}")
    return found


def inside_faults(seen: Mapping[str, Any]) -> list[str]:
    """Where what `LOOK` saw is not a closed sandbox; empty if nowhere."""
    found = []
    if seen["way_out"] != 0:
        found.append("a connection out of it can be made")
    if set(seen["interfaces"]) != {"lo"}:
        found.append(f"it has the network interfaces {sorted(seen['interfaces'])}")
    if any(int(mask, 16) for mask in seen["capabilities"]):
        found.append(f"its first process has the capabilities {seen['capabilities']}")
    if {*seen["uid"], *seen["gid"], *seen["groups"]} != {str(USER)}:
        found.append(f"its first process runs as {seen['uid']}, groups {seen['gid']} {seen['groups']}")
    if seen["no_new_privileges"] != ["1"]:
        found.append("its first process may gain privileges")
    if writable := set(seen["writable"]) - _NO_FILES - {SCRATCH}:
        found.append(f"it can write to {sorted(writable)}")
    if SCRATCH not in seen["writable"]:
        found.append(f"it cannot write to {SCRATCH}")
    return found


def _part(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = told.get(name)
    return value if isinstance(value, Mapping) else {}
