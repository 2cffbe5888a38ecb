"""timeout: run a command and end it after a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    quote,
    typographic,
    value,
)
from ramet.commands.system.process.signal_numbers import SIGNALS, signal_number
from ramet.commands.system.run.sleep import duration
from ramet.concurrency.tasks import give_up
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.signals import Died


@dataclass(frozen=True, slots=True)
class TimeoutOptions:
    foreground: bool = flag("-f", "--foreground", help="do not put the command in the background")
    kill_after: str | None = value(
        "-k",
        "--kill-after",
        metavar="DURATION",
        help="also send a KILL signal if COMMAND is still running this long after",
    )
    preserve: bool = flag(
        "-p", "--preserve-status", help="exit with the same status as COMMAND, even when it times out"
    )
    signal: str = value(
        "-s", "--signal", metavar="SIGNAL", default="TERM", help="specify the signal to be sent on timeout"
    )
    verbose: bool = flag("-v", "--verbose", help="diagnose to stderr any signal sent upon timeout")


async def timeout(proc: Proc, o: TimeoutOptions, operands: list[str]) -> int:
    number = signal_number(o.signal)
    if number is None:
        raise UsageError(f"{quote(o.signal)}: invalid signal")
    grace = None if o.kill_after is None else duration(o.kill_after)
    if len(operands) < 2:
        proc.stderr.write(encode(f"Try '{proc.argv[0]} --help' for more information.\n"))
        return 125
    limit = duration(operands[0])
    if limit == 0:
        return await proc.run(operands[1:])
    task = asyncio.ensure_future(proc.run(operands[1:]))
    if await _ends_in_time(task, min(limit, 1e9)):
        return task.result()
    if o.verbose:
        name = next((n for n, i in SIGNALS.items() if i == number), str(number))
        proc.complain(typographic(proc, f"sending signal {name} to command {quote(operands[1])}"))
    # The command may handle the signal: then wait for its end, or for --kill-after.
    signal_group = proc.services.signal_group
    if signal_group is not None and signal_group(number):
        if await _ends_in_time(task, grace):
            return task.result() & 255 if o.preserve else 124
        number = 9
    task.cancel()
    await _ends_in_time(task, None)
    if not task.cancelled() and (failure := task.exception()) is not None:
        raise failure
    if number == 9:
        raise Died(9)  # SIGKILL ends timeout as well
    return 128 + number if o.preserve else 124


async def _ends_in_time(task: asyncio.Future[int], seconds: float | None) -> bool:
    """Return whether a command ends in time; a cancellation of the caller ends it."""
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await give_up((task,))
        raise
    return bool(done)


COMMANDS = [
    Command(
        "timeout",
        timeout,
        TimeoutOptions,
        summary="Start COMMAND, and kill it if still running after DURATION.",
        usage="[OPTION] DURATION COMMAND [ARG]...",
        operands_first=True,
        bad_usage=125,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
