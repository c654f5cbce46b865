"""The sandbox that a worker runs in, and the command lines that container engines start it with.

Nothing here runs anything. What the engines make of these words is read back from the running container
(`prereg.collect.container_check`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from prereg.errors import WrongState

EngineName = Literal["podman", "docker", "apptainer"]

STUDY = "/study"
"""Where a worker sees the staged study, read-only."""
SCRATCH = "/scratch"
"""The one place where a worker may write: memory, gone with the container."""
ENVIRONMENT = "/opt/engine"
"""The environment of the build inside its image."""
PYTHON = f"{ENVIRONMENT}/bin/python"
USER = 65534
"""User and group of the worker: nobody."""
PIDS = 1024
SCRATCH_BYTES = 1 << 30
LABEL = "prereg.worker"

EXHAUSTED = "reached its limit of memory"

_ID = re.compile(r"sha256:[0-9a-f]{64}")

# The first process of the container. A worker that the kernel kills for want of memory leaves no word; this
# says it for it, and stays a moment: podman was seen to lose what is said right before the end. The counter
# has two names, by the version of control groups.
_SUPERVISE = """
"$@"
code=$?
if [ "$code" -eq 137 ]; then
  for counter in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    if grep -qs '^oom_kill [1-9]' "$counter"; then
      echo "the container {exhausted}, {memory} bytes" >&2
      sleep 1
      break
    fi
  done
fi
exit "$code"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """One container: what runs in it, what it sees, and its limits."""

    name: str
    image: str
    """The image's id; for apptainer the path of the image's file."""
    study: Path
    """The folder that is mounted read-only at `STUDY`."""
    memory: int
    """Bytes that its processes and its scratch may take together."""
    seconds: int
    """Longest life."""


def engine_options(runc: bool) -> list[str]:
    """What podman is told of how to run any container at all on this machine."""
    # crun fails on hybrid control groups; the limits that podman sets by itself can be above the caller's.
    runtime = ["--runtime", "runc"] if runc else []
    return [*runtime, "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]


def run_command(
    engine: EngineName,
    program: str,
    sandbox: Sandbox,
    variables: Mapping[str, str],
    argv: Sequence[str],
    *,
    runc: bool = False,
) -> list[str]:
    """The command line that runs `argv` in the sandbox, its streams being the caller's.

    `program` is the engine's program, `variables` the worker's environment; `runc` says whether podman is to
    use it. Raises WrongState for an image that is named by anything but its id: a tag can be moved.
    """
    script = _SUPERVISE.replace("{exhausted}", EXHAUSTED).replace("{memory}", str(sandbox.memory))
    supervised = ["/bin/sh", "-c", script, "sh", *argv]
    if engine == "apptainer":
        return _apptainer(program, sandbox, variables, argv)
    if not _ID.fullmatch(sandbox.image):
        raise WrongState(
            f"{sandbox.image!r} is no image id; an image is run by its id alone, since a tag can be moved",
            next_step="prereg build NAME --container",
        )
    match engine:
        case "podman":
            own = [
                *engine_options(runc),
                "--read-only-tmpfs=false",
                "--http-proxy=false",
                "--timeout",
                str(sandbox.seconds),
                *("--workdir", SCRATCH),
            ]
        case "docker":
            # Docker makes a working folder before it mounts there, and the mount then has that folder's mode,
            # which lets root alone write; and it has no limit of time.
            own = ["--workdir", "/"]
            supervised[4:4] = ["env", "-C", SCRATCH, "timeout", "-s", "KILL", str(sandbox.seconds)]
        case _:
            assert_never(engine)
    return [
        *(program, "run", "--rm", "-i", "--pull", "never", "--name", sandbox.name, "--label", LABEL),
        *own,
        *("--network", "none", "--ipc", "none", "--hostname", "prereg", "--log-driver", "none"),
        *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--user", f"{USER}:{USER}", "--pids-limit", str(PIDS)),
        *("--memory", str(sandbox.memory), "--memory-swap", str(sandbox.memory)),
        *("--mount", f"type=tmpfs,destination={SCRATCH},tmpfs-size={SCRATCH_BYTES},tmpfs-mode=1777"),
        *("--mount", f"type=bind,source={sandbox.study},destination={STUDY},readonly=true"),
        *(word for name, value in sorted(variables.items()) for word in ("--env", f"{name}={value}")),
        *("--entrypoint", ""),
        sandbox.image,
        *supervised,
    ]


def _apptainer(
    program: str, sandbox: Sandbox, variables: Mapping[str, str], argv: Sequence[str]
) -> list[str]:
    """The same for apptainer, whose root is read-only and whose user is the caller's anyway."""
    return [
        *(program, "exec", "--containall", "--cleanenv", "--no-home", "--no-privs", "--drop-caps", "ALL"),
        *("--net", "--network", "none", "--hostname", "prereg", "--pids-limit", str(PIDS)),
        *("--memory", str(sandbox.memory), "--memory-swap", str(sandbox.memory)),
        *("--scratch", SCRATCH, "--bind", f"{sandbox.study}:{STUDY}:ro", "--pwd", SCRATCH),
        sandbox.image,
        # Its own option for variables refuses HOME, and adds to what is there.
        *("env", "-i", *(f"{name}={value}" for name, value in sorted(variables.items()))),
        *("timeout", "-s", "KILL", str(sandbox.seconds)),
        *argv,
    ]
