"""uptime: how long the system has been running."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import Command, flag
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.strftime import NANO, at, strftime, zone_of


@dataclass(frozen=True, slots=True)
class UptimeOptions:
    pretty: bool = flag("-p", "--pretty", help="show uptime in pretty format")
    since: bool = flag("-s", "--since", help="system up since")


async def uptime(proc: Proc, o: UptimeOptions, operands: list[str]) -> int:
    when, _ = at(int(proc.now() * NANO), zone_of(proc))
    if o.since:
        text = strftime("%F %T", when)
    elif o.pretty:
        text = "up 0 minutes"
    else:
        text = strftime(" %H:%M:%S up 0 min,  0 users,  load average: 0.00, 0.00, 0.00", when)
    await proc.emit(encode(text + "\n"))
    return 0


COMMANDS = [
    Command(
        "uptime",
        uptime,
        UptimeOptions,
        summary="Tell how long the system has been running.",
        usage="[OPTION]...",
        version_letters="V",
        help_letters="h",
    ),
]
