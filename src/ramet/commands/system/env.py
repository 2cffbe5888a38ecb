"""Commands that run commands: env, nohup, nice, timeout, time, watch and their like; and sleep."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    optional,
    ordered,
    quote,
    several,
    typographic,
    value,
)
from ramet.commands.framework.inputs import parse_size
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.signals import NAMES, Died

# ---------------------------------------------------------------------------------------------------------- env


@dataclass(frozen=True, slots=True)
class EnvOptions:
    clear: bool = flag("-i", "--ignore-environment", help="start with an empty environment")
    zero: bool = flag("-0", "--null", help="end each output line with NUL, not newline")
    unset: tuple[str, ...] = several("-u", "--unset", metavar="NAME", help="remove variable from the environment")
    chdir: str | None = value("-C", "--chdir", metavar="DIR", help="change working directory to DIR")
    split: tuple[str, ...] = several(
        "-S", "--split-string", metavar="S", help="process and split S into separate arguments"
    )
    verbose: bool = flag("-v", "--debug", help="print verbose information for each processing step")
    default_signal: str | None = optional("--default-signal", metavar="SIG", const="", help="reset handling of SIG")
    ignore_signal: str | None = optional(
        "--ignore-signal", metavar="SIG", const="", help="set handling of SIG to do nothing"
    )
    block_signal: str | None = optional("--block-signal", metavar="SIG", const="", help="block delivery of SIG")
    list_signals: bool = flag("--list-signal-handling", help="list non default signal handling to stderr")


_ENV_ESCAPES = {
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "#": "#",
    "$": "$",
    "_": " ",
}


def split_string(text: str, env: Mapping[str, str]) -> list[str]:
    """`env -S`: quotes, escapes and ${NAME}, but no other expansion."""
    words: list[str] = []
    word: str | None = None
    quote_char = ""
    i = 0
    while i < len(text):
        c = text[i]
        i += 1
        if quote_char == "'":
            if c == "'":
                quote_char = ""
            elif c == "\\" and text[i : i + 1] in ("'", "\\"):
                word = (word or "") + text[i]
                i += 1
            else:
                word = (word or "") + c
        elif c in "'\"" and (not quote_char or quote_char == c):
            quote_char = "" if quote_char else c
            word = word or ""
        elif c in " \t\n\r\v\f" and not quote_char:
            if word is not None:
                words.append(word)
            word = None
        elif c == "#" and word is None and not quote_char:
            break
        elif c == "\\":
            following = text[i : i + 1]
            i += 1
            if following == "c" and not quote_char:
                break
            if following == "_" and not quote_char:
                if word is not None:
                    words.append(word)
                word = None
            elif following in _ENV_ESCAPES and following:
                word = (word or "") + _ENV_ESCAPES[following]
            elif not following:
                raise UsageError("invalid backslash at end of string in -S", hint=False, status=125)
            else:
                raise UsageError(f"invalid sequence '\\{following}' in -S", hint=False, status=125)
        elif c == "$":
            found = re.match(r"\{([A-Za-z_]\w*)\}", text[i:])
            if found is None:
                raise UsageError(
                    f"only ${{VARNAME}} expansion is supported, error at: {text[i - 1 :]}", hint=False, status=125
                )
            word = (word or "") + env.get(found[1], "")
            i += found.end()
        else:
            word = (word or "") + c
    if quote_char:
        raise UsageError("no terminating quote in -S string", hint=False, status=125)
    if word is not None:
        words.append(word)
    return words


async def env(proc: Proc, o: EnvOptions, operands: list[str]) -> int:
    if o.split:
        operands = [*split_string(" ".join(o.split), proc.env), *operands]
        # What -S gives may begin with options of its own.
        from ramet.commands.framework.command import parse

        inner, operands = parse(_ENV, operands)
        if inner is not None:
            o = EnvOptions(
                verbose=o.verbose or inner.verbose,
                clear=o.clear or inner.clear,
                zero=o.zero or inner.zero,
                unset=o.unset + inner.unset,
                chdir=inner.chdir or o.chdir,
                default_signal=o.default_signal if inner.default_signal is None else inner.default_signal,
                ignore_signal=o.ignore_signal if inner.ignore_signal is None else inner.ignore_signal,
                block_signal=o.block_signal if inner.block_signal is None else inner.block_signal,
                list_signals=o.list_signals or inner.list_signals,
            )
    taken = _taken(o)
    alone = operands[:1] == ["-"]  # which means -i where the options end
    operands = operands[alone:]
    clear = o.clear or alone
    steps = ["cleaning environ"] if clear else []
    variables = {} if clear else dict(proc.env)
    for name in o.unset:
        if not name or "=" in name:
            raise UsageError(f"cannot unset {typographic(proc, quote(name))}: Invalid argument", hint=False)
        variables.pop(name, None)
        steps.append(f"unset:    {name}")
    while operands and "=" in operands[0][1:]:
        name, _, text = operands[0].partition("=")
        variables[name] = text
        steps.append(f"setenv:   {operands[0]}")
        operands = operands[1:]
    if o.list_signals:
        blocked = _signals(o.block_signal) if o.block_signal is not None else []
        for name in sorted((name for name, ignored in taken.items() if ignored), key=NAMES.index):
            how = "BLOCK" if name in blocked else "IGNORE"
            proc.stderr.write(encode(f"{name:<10} ({NAMES.index(name):2d}): {how}\n"))
    if o.verbose:
        steps += [f"chdir:    {quote(o.chdir)}"] if o.chdir is not None else []
        if operands:
            steps.append(f"executing: {operands[0]}")
        words = [typographic(proc, quote(word)) for word in operands]
        steps += [f"   arg[{index}]= {word}" for index, word in enumerate(words)]
        proc.stderr.write(encode("".join(f"{step}\n" for step in steps)))
    if operands in (["env"], ["printenv"]) and o.chdir is None:
        # It would print what it is given: nothing that a shell adds for its own commands.
        operands = []
    if not operands:
        if o.chdir is not None:
            raise UsageError("must specify command with --chdir (-C)")
        end = "\0" if o.zero else "\n"
        await proc.emit_texts(part for name, text in variables.items() for part in (name, "=", text, end))
        return 0
    if o.zero:
        raise UsageError("cannot specify --null (-0) with command")
    cwd: Path | None = None
    if o.chdir is not None:
        cwd = proc.path(o.chdir)
        try:
            if not (await proc.fs.stat(cwd, follow=True)).is_dir:
                raise NotADirectoryError(20, "", o.chdir)
        except OSError as error:
            proc.complain(f"cannot change directory to {quote(o.chdir)}: {reason(error)}")
            return 125
    return await proc.run(operands, env=variables, cwd=cwd, signals=taken)


def _taken(o: EnvOptions) -> dict[str, bool]:
    """How signals are taken: whether each is ignored. What is blocked never arrives either."""
    asked = ((o.default_signal, False), (o.ignore_signal, True), (o.block_signal, True))
    return {name: ignored for given, ignored in asked if given is not None for name in _signals(given)}


def _signals(given: str) -> list[str]:
    if not given:
        return [name for name in NAMES[1:] if name not in ("KILL", "STOP")]
    found: list[str] = []
    for word in given.split(","):
        name = NAMES[int(word)] if word.isdigit() and int(word) < len(NAMES) else word.upper().removeprefix("SIG")
        if name not in NAMES[1:]:
            raise UsageError(f"{quote(word)}: invalid signal")
        found.append(name)
    return found


# ------------------------------------------------------------------------------------------- nohup, nice, stdbuf


async def nohup(proc: Proc, o: object, operands: list[str]) -> int:
    return await proc.run(operands, signals={"HUP": True})


@dataclass(frozen=True, slots=True)
class NiceOptions:
    adjustment: str = value(
        "-n", "--adjustment", metavar="N", default="10", digits=True, help="add integer N to the niceness"
    )
    order: tuple[tuple[str, object], ...] = ordered()


_niceness: ContextVar[int] = ContextVar("niceness", default=0)
"""What nice has added up to, for those that ask: it makes nothing slower."""


async def nice(proc: Proc, o: NiceOptions, operands: list[str]) -> int:
    if not re.fullmatch(r"[+-]?\d+", o.adjustment):
        raise UsageError(f"invalid adjustment {quote(o.adjustment)}", status=125, hint=False)
    if not operands and o.order:
        raise UsageError("a command must be given with an adjustment", status=125)
    now = _niceness.get()
    if not operands:
        await proc.emit(b"%d\n" % now)
        return 0
    if int(o.adjustment) < 0 and proc.user.uid:
        proc.complain("cannot set niceness: Permission denied")
        return await proc.run(operands)
    before = _niceness.set(max(-20, min(19, now + int(o.adjustment))))
    try:
        return await proc.run(operands)
    finally:
        _niceness.reset(before)


@dataclass(frozen=True, slots=True)
class IoniceOptions:
    klass: str | None = value("-c", "--class", metavar="CLASS", help="name or number of scheduling class")
    level: str | None = value(
        "-n", "--classdata", metavar="NUM", help="priority (0..7) in the specified scheduling class"
    )
    pid: str | None = value("-p", "--pid", metavar="PID", help="act on these already running processes")
    ignore: bool = flag("-t", "--ignore", help="ignore failures")


async def ionice(proc: Proc, o: IoniceOptions, operands: list[str]) -> int:
    if not operands:
        await proc.emit(b"none: prio 0\n")
        return 0
    return await proc.run(operands)


@dataclass(frozen=True, slots=True)
class StdbufOptions:
    input: str | None = value("-i", "--input", metavar="MODE", help="adjust standard input stream buffering")
    output: str | None = value("-o", "--output", metavar="MODE", help="adjust standard output stream buffering")
    error: str | None = value("-e", "--error", metavar="MODE", help="adjust standard error stream buffering")


async def stdbuf(proc: Proc, o: StdbufOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if o.input is None and o.output is None and o.error is None:
        raise UsageError("you must specify a buffering mode option")
    if o.input == "L":
        raise UsageError("line buffering stdin is meaningless")
    for mode in (o.input, o.output, o.error):
        if mode is not None and mode != "L":
            try:
                parse_size(mode, "mode")
            except UsageError as error:
                raise UsageError(str(error).replace("mode:", "mode"), status=125, hint=False) from None
    modes = {"_STDBUF_I": o.input, "_STDBUF_O": o.output, "_STDBUF_E": o.error}
    asked = {name: mode for name, mode in modes.items() if mode is not None}
    return await proc.run(operands, env={**proc.env, **asked})


@dataclass(frozen=True, slots=True)
class SetsidOptions:
    ctty: bool = flag("-c", "--ctty", help="set the controlling terminal to the current one")
    fork: bool = flag("-f", "--fork", help="always fork")
    wait: bool = flag("-w", "--wait", help="wait program to exit, and use the same return")


async def setsid(proc: Proc, o: SetsidOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("no command specified")
    return await proc.run(operands)


# ------------------------------------------------------------------------------------------- timeout and sleep


_DURATION = re.compile(
    r"\s*\+?((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?)"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?)([smhd]?)"
)


def duration(text: str, words: str = "invalid time interval") -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UsageError(f"{words} {quote(text)}")
    amount = float.fromhex(found[1]) if found[1][:2].lower() == "0x" else float(found[1])
    return amount * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


SIGNALS = {"POLL" if name == "IO" else name: number for number, name in enumerate(NAMES) if number}


def signal_number(text: str) -> int | None:
    """The number of a signal given by number or name."""
    if text.isdigit():
        return int(text) if int(text) <= 64 else None
    name = text.upper().removeprefix("SIG")
    return 0 if name == "EXIT" else SIGNALS.get(name, {"IO": 29, "CLD": 17, "IOT": 6}.get(name))


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
    if await _ended(task, min(limit, 1e9)):
        return task.result()
    if o.verbose:
        name = next((n for n, i in SIGNALS.items() if i == number), str(number))
        proc.complain(typographic(proc, f"sending signal {name} to command {quote(operands[1])}"))
    # What runs may have its own way with the signal: then it is its end that counts, or the end of patience with it.
    signal_group = proc.services.signal_group
    if signal_group is not None and signal_group(number):
        if await _ended(task, grace):
            return task.result() & 255 if o.preserve else 124
        number = 9
    task.cancel()
    await _ended(task, None)
    if not task.cancelled() and (failure := task.exception()) is not None:
        raise failure
    if number == 9:
        raise Died(9)  # this signal reaches the sender as well
    return 128 + number if o.preserve else 124


async def _ended(task: asyncio.Future[int], patience: float | None) -> bool:
    """Whether a command ends in time; it is not left behind by a cancellation of whoever waits for it."""
    try:
        done, _ = await asyncio.wait({task}, timeout=patience)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    return bool(done)


_LOOK_AGAIN: Final = 86400.0
"""Seconds that the event loop is asked to wait at most; it takes no endless ones."""


async def sleep(proc: Proc, o: object, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    total = 0.0
    bad: UsageError | None = None
    for word in operands:
        try:
            total += duration(word)
        except UsageError as error:
            if bad is not None:
                proc.complain(bad.message)
            bad = error
    if bad is not None:
        raise bad
    loop = asyncio.get_running_loop()
    end = loop.time() + total
    while (left := end - loop.time()) > 0:
        budget = proc.budget.left()
        await asyncio.sleep(min(left, _LOOK_AGAIN if budget is None else min(_LOOK_AGAIN, budget)))
        proc.budget.check()
    return 0


# --------------------------------------------------------------------------------------------------------- time


@dataclass(frozen=True, slots=True)
class TimeOptions:
    posix: bool = flag("-p", "--portability", help="print POSIX 1003.2 conformant output")
    format: str | None = value("-f", "--format", metavar="FORMAT", help="use FORMAT instead of the default")
    output: str | None = value("-o", "--output", metavar="FILE", help="write the statistics to FILE")
    append: bool = flag("-a", "--append", help="with -o, append instead of overwriting")
    verbose: bool = flag("-v", "--verbose", help="give all the available information")
    quiet: bool = flag("-q", "--quiet", help="do not report abnormal exits")


async def time(proc: Proc, o: TimeOptions, operands: list[str]) -> int:
    loop = asyncio.get_running_loop()
    start = loop.time()
    status = await proc.run(operands) & 255 if operands else 0
    real = loop.time() - start
    if o.posix:
        text = f"real {real:.2f}\nuser {real:.2f}\nsys 0.00\n"
    else:
        minutes = f"{int(real // 60)}:{real % 60:05.2f}"
        shape = (
            o.format
            or "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n"
            "%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps"
        )
        table = {
            "e": f"{real:.2f}",
            "E": minutes,
            "U": f"{real:.2f}",
            "S": "0.00",
            "P": "99%",
            "x": str(status),
            "C": " ".join(operands),
            "%": "%",
        }
        text = re.sub(r"%(.)", lambda m: table.get(m[1], "0"), shape).replace("\\n", "\n").replace("\\t", "\t") + "\n"
    out = await proc.create(o.output, append=o.append) if o.output is not None else proc.stderr
    out.write(encode(text))
    await proc.close(out)
    return status


# -------------------------------------------------------------------------------------------------------- watch


@dataclass(frozen=True, slots=True)
class WatchOptions:
    beep: bool = flag("-b", "--beep", help="beep if command has a non-zero exit")
    differences: str | None = optional(
        "-d", "--differences", metavar="permanent", const="", help="highlight changes between updates"
    )
    errexit: bool = flag("-e", "--errexit", help="exit if command has a non-zero exit")
    change: bool = flag("-g", "--chgexit", help="exit when output from command changes")
    interval: str = value("-n", "--interval", metavar="SECS", default="2", help="seconds to wait between updates")
    equal: str | None = value(
        "-q", "--equexit", metavar="CYCLES", help="exit when output from command does not change in CYCLES"
    )
    no_title: bool = flag("-t", "--no-title", help="turn off header")
    exec: bool = flag("-x", "--exec", help='pass command to exec instead of "sh -c"')
    color: bool = flag("-c", "--color", help="interpret ANSI color and style sequences")


async def watch(proc: Proc, o: WatchOptions, operands: list[str]) -> int:
    from ramet.core.streams import Capture

    if not operands:
        raise UsageError("missing command")
    if not (o.change or o.equal or o.errexit) and proc.budget.left() is None:
        proc.complain("would never end: give -g, -q or -e, or limit the time of the execution")
        return 1
    words = operands if o.exec else ["bash", "-c", " ".join(operands)]
    before: bytes | None = None
    same = 0
    while True:
        captured = Capture(proc.budget.limits.output_bytes)
        status = await proc.run(words, stdout=captured)
        output = captured.getvalue()
        if output != before:
            await proc.emit(output)
        if status and o.errexit:
            return 8
        if before is not None and o.change and output != before:
            return 0
        same = same + 1 if output == before else 0
        if o.equal and same >= int(o.equal):
            return 0
        before = output
        await sleep(proc, None, [o.interval])


_ENV = Command(
    "env",
    env,
    EnvOptions,
    summary="Set each NAME to VALUE in the environment and run COMMAND.",
    usage="[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]",
    bad_usage=125,
    operands_first=True,
)

COMMANDS = [
    _ENV,
    Command(
        "nohup",
        nohup,
        summary="Run COMMAND, ignoring hangup signals.",
        usage="COMMAND [ARG]...",
        operands_first=True,
        bad_usage=125,
        min_operands=1,
    ),
    Command(
        "nice",
        nice,
        NiceOptions,
        summary="Run COMMAND with an adjusted niceness, which has no effect here.",
        usage="[OPTION] [COMMAND [ARG]...]",
        operands_first=True,
        bad_usage=125,
    ),
    Command(
        "ionice",
        ionice,
        IoniceOptions,
        summary="Run COMMAND with an I/O class, which has no effect here.",
        usage="[OPTION]... [COMMAND [ARG]...]",
        operands_first=True,
    ),
    Command(
        "stdbuf",
        stdbuf,
        StdbufOptions,
        summary="Run COMMAND with modified buffering, which has no effect here.",
        usage="OPTION... COMMAND",
        operands_first=True,
        bad_usage=125,
    ),
    Command(
        "setsid",
        setsid,
        SetsidOptions,
        summary="Run a program in a new session.",
        usage="[OPTION]... COMMAND [ARG]...",
        operands_first=True,
    ),
    Command(
        "timeout",
        timeout,
        TimeoutOptions,
        summary="Start COMMAND, and kill it if still running after DURATION.",
        usage="[OPTION] DURATION COMMAND [ARG]...",
        operands_first=True,
        bad_usage=125,
    ),
    Command("sleep", sleep, summary="Pause for NUMBER seconds (s, m, h, d).", usage="NUMBER[SUFFIX]..."),
    Command(
        "time",
        time,
        TimeOptions,
        summary="Run COMMAND and report the time it took.",
        usage="[OPTION]... COMMAND [ARG]...",
        operands_first=True,
    ),
    Command(
        "watch",
        watch,
        WatchOptions,
        summary="Execute a program periodically, printing its output when it changes.",
        usage="[OPTION]... COMMAND",
        operands_first=True,
    ),
]
