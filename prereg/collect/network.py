"""Whether workers run without a network, found out by trying it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from prereg.model.record import Network
from prereg.model.visible import visible

# Connecting a UDP socket sends nothing; it fails exactly when no route exists. The address is reserved for
# documentation (RFC 5737): no host would hear of it in any case.
PROBE = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    try:
        s.connect(("192.0.2.1", 9))
    except OSError:
        sys.exit(0)
sys.exit("a route out is still there")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How a worker is started, and what that means for its network."""

    network: Network
    reason: str | None
    """Why the network is not cut; None where it is."""
    prefix: tuple[str, ...]
    """Words in front of the worker's own command line."""


CONTAINED = Isolation(network="cut", reason=None, prefix=())
"""Of a container that was looked at: it has no network, and nothing need be put in front of its command."""


@functools.cache
def isolation() -> Isolation:
    """Find the way to cut the network on this host by running it for real; the answer is kept."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return _not_cut("the program unshare is not installed")
    ways = [(unshare, "-n", "--"), (unshare, "-rn", "--")]
    reason = ""
    for prefix in ways if os.geteuid() == 0 else ways[1:]:
        try:
            done = subprocess.run(
                [*prefix, sys.executable, "-I", "-c", PROBE],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
            continue
        if done.returncode == 0:
            return Isolation(network="cut", reason=None, prefix=prefix)
        reason = visible(done.stderr.decode("utf-8", "replace").strip()) or f"exit status {done.returncode}"
    return _not_cut(f"unshare failed: {reason}"[:2000])


def _not_cut(reason: str) -> Isolation:
    return Isolation(network="not-cut", reason=reason, prefix=())
