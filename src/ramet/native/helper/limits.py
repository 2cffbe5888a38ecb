"""Resource limits of a program: those of the box, and those that it has set for itself."""

from __future__ import annotations

import resource
from collections.abc import Mapping

HARMLESS = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_STACK")
"""Limits of a program under which its worker can live; others are lowered for the program alone, once it runs."""
LEAST_DATA = 64 << 20
"""The worker lives under the limits of its program: RLIMIT_DATA below this would hit the worker."""
LEAST_SPACE = 64 << 20
"""The worker can start its program under such an RLIMIT_AS; a lower one comes once the program runs."""


def set_limits_of_box(rlimits: Mapping[str, int]) -> None:
    """Bound this process and its program, as far as the limits it has already allow."""
    for name, most in rlimits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        most = max(most, LEAST_DATA) if name == "RLIMIT_DATA" else most
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def can_start_under(name: str, soft: int) -> bool:
    """Whether a worker can have a limit of its program while it starts that."""
    return name != "RLIMIT_AS" or soft < 0 or soft >= LEAST_SPACE


def lower_limits(pid: int, limits: Mapping[str, tuple[int, int]]) -> None:
    """Set limits of a process as far as its hard limits allow; 0 is this one, which must live on after its program."""
    for name, (soft, hard) in limits.items():
        which = getattr(resource, name)
        try:
            most = resource.prlimit(pid, which)[1]
            keeps = hard < 0 or (not pid and name not in HARMLESS)
            hard = most if keeps else hard if most < 0 else min(hard, most)
            soft = hard if soft < 0 else soft if hard < 0 else min(soft, hard)
            resource.prlimit(pid, which, (soft, hard))
        except ProcessLookupError:
            return
