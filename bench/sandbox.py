"""Real bash and GNU tools as a reference, always inside bubblewrap: own namespaces, memory as root, no capabilities."""

from __future__ import annotations

import shlex
import shutil
import subprocess

AVAILABLE = shutil.which("bwrap") is not None

_SANDBOX = [
    "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr",
    "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp", "--clearenv",
    "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LC_ALL", "C.UTF-8",
]  # fmt: skip


def sandboxed(script: str, binds: dict[str, str] | None = None) -> str:
    """What real bash prints for a script; `binds` makes directories of the host appear inside, read-only."""
    shared = [word for host, inside in (binds or {}).items() for word in ("--ro-bind", host, inside)]
    if "/etc/alternatives" not in shared:
        shared += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    done = subprocess.run([*_SANDBOX, *shared, "bash", "-c", script], capture_output=True, check=True, text=True)
    return done.stdout


def inside_seconds(script: str, setup: str = "", binds: dict[str, str] | None = None) -> float:
    """Seconds that a script takes inside a running bash, without its start."""
    timed = (
        f"{setup}\n__began=$EPOCHREALTIME\n{{ {script}\n}} > /tmp/.output\n__ended=$EPOCHREALTIME\n"
        "echo $(( ${__ended/./} - ${__began/./} ))"
    )
    return int(sandboxed(timed, binds).split()[-1]) / 1e6


def spawn_seconds(script: str, times: int = 20) -> float:
    """Seconds that starting bash for a script takes."""
    return inside_seconds(f"for ((__n = 0; __n < {times}; __n++)); do bash -c {shlex.quote(script)}; done") / times
