"""What native programs need of a machine, checked one by one, each with its remedy."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from ramet.core.errors import RametError
from ramet.native.bubblewrap import OLDEST, find_bubblewrap, version_of
from ramet.native.fuse.mounts import REMEDY
from ramet.native.layout import box_owner
from ramet.native.limits.cgroups import create_cgroup
from ramet.native.options import Native, NativeLimits
from ramet.native.runtime import Runtime
from ramet.native.seccomp import machine_is_known


@dataclass(frozen=True)
class Ingredient:
    """One thing that native programs need, or are safer with."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True


def ingredients() -> list[Ingredient]:
    """Check this machine. The last check builds a real box."""
    if not sys.platform.startswith("linux"):
        return [Ingredient("Linux", False, sys.platform, "Run Ramet on Linux, or in a Linux container.")]
    program = find_bubblewrap()
    wanted = ".".join(map(str, OLDEST))
    version = ".".join(map(str, version_of(program))) if program is not None else ""
    found = [
        Ingredient("Linux", True, os.uname().release),
        Ingredient(
            "bubblewrap", program is not None, f"{version} at {program}" if program else f"none of {wanted} or newer",
            "pip install 'ramet[native]'",
        ),
        _user_namespaces(),
        Ingredient(
            "seccomp", machine_is_known(), os.uname().machine,
            "Programs run without a system call filter on this machine.", required=False,
        ),
        _bounds(),
    ]  # fmt: skip
    if all(one.ok for one in found if one.required):
        found += _box()
    return found


def _user_namespaces() -> Ingredient:
    remedy = "sysctl user.max_user_namespaces=10000, and on Debian kernel.unprivileged_userns_clone=1"
    for path in ("/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/unprivileged_userns_clone"):
        try:
            with open(path) as file:
                if int(file.read()) == 0:
                    return Ingredient("user namespaces", False, f"{path} is 0", remedy)
        except OSError:
            continue  # not every kernel has both
    present = os.path.exists("/proc/self/ns/user")
    return Ingredient("user namespaces", present, "allowed" if present else "not in this kernel", remedy)


def _bounds() -> Ingredient:
    made = create_cgroup(NativeLimits())
    made.remove()
    if made.controllers:
        return Ingredient("bounds", True, f"cgroup: {', '.join(sorted(made.controllers))}")
    try:
        foreign = box_owner().foreign
    except RametError as error:
        return Ingredient("bounds", False, error.cause, error.remediation)
    if foreign:
        return Ingredient("bounds", False, "root without a pids controller", "Run Ramet as an ordinary user.")
    remedy = "Delegate a cgroup to this user for exact bounds of memory."
    return Ingredient("bounds", True, "rlimits and a watchdog", remedy)


def _box() -> list[Ingredient]:
    """Build a box with a mount that is served by FUSE, too."""
    try:
        runtime = Runtime(Native())
        try:
            runtime.add_tree("/", lambda _: None)
            runtime.remote.add("/remote", writable=False, late=False)
            runtime.open()
            problem, blind = runtime.remote.problem, runtime.check_view()
        finally:
            runtime.close()
    except (RametError, OSError) as error:
        remedy = error.remediation if isinstance(error, RametError) else "See docs/native.md."
        return [Ingredient("box", False, str(error), remedy)]
    return [
        Ingredient("box", True, "built with an overlay and entered"),
        Ingredient(
            "FUSE", not problem, problem or "programs see remote mounts",
            f"Programs do not see remote mounts. {REMEDY}", required=False,
        ),
        Ingredient(
            "policy paths", not blind, blind or "hidden and read-only paths hold for programs",
            "Linux 5.12 or newer can mount them; else programs refuse to start where a policy names paths.",
            required=False,
        ),
    ]  # fmt: skip
