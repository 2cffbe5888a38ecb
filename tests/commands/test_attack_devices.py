"""Endless devices against every command: the deadline holds, the event loop goes on, memory stays bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.attack import FULL, Outcome, harmful

from ramet.commands.framework.table import MODULES

DEVICES = ("/dev/zero", "/dev/urandom")
FORMS = ("{0} {1}", "{0} < {1}", "{0} x {1}", "{0} {1} {1}", "{0} {1} out", "{0} a {1}")
SPECIAL = Path(__file__).with_name("attack_devices.txt").read_text().splitlines()
"""Ways to a device beyond an operand and standard input."""
SMALL = (
    "tar cf - /dev/zero", "cp /dev/zero /dev/null", "less /dev/zero", "rg x /dev/urandom", "zip o.zip /dev/zero",
    "patch /dev/zero a", "install /dev/zero out", "mv /dev/zero out", "sqlite3 /dev/zero 'select 1'",
    "unzip -l /dev/zero", "xxd -r /dev/zero out", "install -C /dev/zero a", "zstd -c /dev/zero",
    "dos2unix /dev/zero", "grep x /dev/zero", "grep -c x < /dev/zero", "head -n -5 /dev/zero", "head -c -9G /dev/zero",
    "tail -n 5 /dev/zero", "tail -c 9G < /dev/zero", "tail -f /dev/zero",
    "printf 'select \\0 1;\\n' | sqlite3", "printf '\\0;\\n' | sqlite3",
)  # fmt: skip
"""What fell once."""


def scripts() -> list[str]:
    """Every command of the table with every device in every form."""
    made = [form.format(name, device) for device in DEVICES for name in sorted(MODULES) for form in FORMS]
    return made + [form.replace("DEVICE", device) for device in DEVICES for form in SPECIAL]


def shown(found: list[Outcome]) -> str:
    return "\n".join(f"{o.script}: {o.status}, {o.held:.1f} s, {o.grown >> 20} MiB: {o.error[-100:]}" for o in found)


def test_the_commands_that_fell() -> None:
    found = harmful(SMALL)
    assert not found, shown(found)


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not FULL, reason="RAMET_SWEEP=full runs every command, in about ten minutes")
def test_every_command() -> None:
    found = harmful(scripts(), wall_time=0.2)
    assert not found, shown(found)
