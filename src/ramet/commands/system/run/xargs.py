"""xargs: build command lines from input and run them, several at a time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    mixed,
    optional,
    ordered,
    quote,
    shown,
    typographic,
    value,
)
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload_large
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.signals import BySignal
from ramet.core.streams import Null, PipeWriter, Reader

LIMIT = 128 * 1024


@dataclass(frozen=True, slots=True)
class XargsOptions:
    order: tuple[tuple[str, object], ...] = ordered()
    null: bool = flag("-0", "--null", help="items are separated by a null, not whitespace")
    arg_file: str | None = value(
        "-a", "--arg-file", metavar="FILE", help="read arguments from FILE, not standard input"
    )
    delimiter: str | None = value("-d", "--delimiter", metavar="CHARACTER", help="items are separated by CHARACTER")
    eof: str | None = mixed(
        value("-E", metavar="END", help="set logical EOF string"),
        optional("-e", "--eof", metavar="END", const=None, help="equivalent to -E END if END is specified"),
        default=None,
    )
    replace: str | None = mixed(
        value("-I", metavar="R", help="replace R in INITIAL-ARGS with names read from input"),
        optional("-i", "--replace", metavar="R", const="{}", help="like -I, R defaults to {}"),
        default=None,
    )
    max_lines: str | None = mixed(
        value("-L", metavar="MAX-LINES", help="use at most MAX-LINES non-blank input lines per command line"),
        optional("-l", "--max-lines", metavar="MAX-LINES", const="1", help="like -L, default 1"),
        default=None,
    )
    max_args: str | None = value(
        "-n", "--max-args", metavar="MAX-ARGS", help="use at most MAX-ARGS arguments per command line"
    )
    open_tty: bool = flag("-o", "--open-tty", help="reopen stdin as /dev/tty in the child process")
    procs: str = value(
        "-P", "--max-procs", metavar="MAX-PROCS", default="1", help="run at most MAX-PROCS processes at a time"
    )
    interactive: bool = flag("-p", "--interactive", help="prompt before running commands")
    slot_var: str | None = value(
        "--process-slot-var", metavar="VAR", help="set environment variable VAR in child processes"
    )
    no_run: bool = flag("-r", "--no-run-if-empty", help="if there are no arguments, then do not run COMMAND")
    max_chars: str | None = value(
        "-s", "--max-chars", metavar="MAX-CHARS", help="limit length of command line to MAX-CHARS"
    )
    limits: bool = flag("--show-limits", help="show limits on command-line length")
    verbose: bool = flag("-t", "--verbose", help="print commands before executing them")
    exit: bool = flag("-x", "--exit", help="exit if the size (see -s) is exceeded")


def _number(text: str | None, option: str, low: int) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"-?\d+", text):
        raise UsageError(f'invalid number "{text}" for -{option} option')
    if int(text) < low:
        raise UsageError(f"value {text} for -{option} option should be >= {low}")
    return int(text)


def _delimiter(text: str) -> bytes:
    if len(text) == 1 and ord(text) < 128:
        return text.encode()
    found = re.fullmatch(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|[abfnrtv0\\])", text)
    if found is None:
        if text.startswith("\\"):
            raise UsageError(f"Invalid escape sequence {text} in input delimiter specification.", hint=False)
        raise UsageError(
            f"Invalid input delimiter specification {text}: the delimiter must be either a single character or "
            "an escape sequence starting with \\.",
            hint=False,
        )
    body = found[1]
    if body[0] == "x":
        return bytes([int(body[1:], 16)])
    if body[0].isdigit():
        return bytes([int(body, 8) & 255])
    return {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\"}[body]


_PIPE_SIGNAL: Final = 13
"""SIGPIPE."""


class _Stop(Exception):
    """A command exited with 255, or a line was too long: run no more commands."""

    def __init__(self, status: int) -> None:
        self.status = status


class _Broken(_Stop):
    """An open quote or a word that is too long: commands before it still run."""


_ARGUMENT_SPACE = (1 << 21) - 2048
_BUFFER = 128 * 1024


def _show_limits(proc: Proc, max_chars: int | None) -> None:
    """Print the limits of an ordinary kernel, as --show-limits does."""
    used = sum(len(encode(name)) + len(encode(text)) + 2 for name, text in proc.env.items())
    most = _ARGUMENT_SPACE - used
    rows = (
        f"Your environment variables take up {used} bytes",
        f"POSIX upper limit on argument length (this system): {most}",
        "POSIX smallest allowable upper limit on argument length (all systems): 4096",
        f"Maximum length of command we could actually use: {most - used}",
        f"Size of command buffer we are actually using: {max_chars or _BUFFER}",
        "Maximum parallelism (--max-procs must be no greater): 2147483647",
    )
    proc.stderr.write(encode("".join(f"{row}\n" for row in rows)))


def _one_of(
    proc: Proc, o: XargsOptions, max_args: int | None, max_lines: int | None
) -> tuple[str | None, int | None, int | None]:
    """Return what -I, -n and -L leave of each other: the last of them wins, but -n 1 says nothing against -I."""
    lines_option = "-L" if any(word.startswith("-L") for word in proc.argv) else "--max-lines/-l"
    shown_as = {"replace": "--replace/-I/-i", "max_args": "--max-args/-n", "max_lines": lines_option}
    plain = {"replace": "--replace", "max_args": "--max-args", "max_lines": "--max-lines"}
    kept = ""
    for name, _ in o.order:
        if name not in shown_as or kept == name:
            continue
        if kept and not (max_args == 1 and {kept, name} == {"replace", "max_args"} and name == "max_args"):
            proc.complain(
                f"warning: options {plain[kept]} and {shown_as[name]} are mutually exclusive, ignoring previous "
                f"{plain[kept]} value"
            )
        elif kept:
            continue
        kept = name
    return (
        o.replace if kept == "replace" else None,
        max_args if kept == "max_args" else None,
        max_lines if kept == "max_lines" else None,
    )


async def xargs(proc: Proc, o: XargsOptions, operands: list[str]) -> int:
    max_args, max_lines = _number(o.max_args, "n", 1), _number(o.max_lines, "L", 1)
    procs, max_chars = _number(o.procs, "P", 0), _number(o.max_chars, "s", 1)
    if o.limits:
        _show_limits(proc, max_chars)
    replace, max_args, max_lines = _one_of(proc, o, max_args, max_lines)
    last = next((name for name, _ in reversed(o.order) if name in ("null", "delimiter")), "")
    delimiter = b"\0" if last == "null" else _delimiter(o.delimiter) if o.delimiter is not None else None
    if delimiter is not None and o.eof is not None:
        proc.complain("warning: the -E option has no effect if -0 or -d is used.\n")
    try:
        reader = proc.stdin if o.arg_file is None else await proc.open(o.arg_file)
    except OSError as error:
        proc.complain(typographic(proc, f"Cannot open input file {quote(o.arg_file or '')}: {reason(error)}"))
        return 1
    command = operands or ["echo"]
    runner = _Runner(proc, o, procs or 0)
    limit = max_chars or LIMIT
    try:
        if replace is not None:
            async for items, _ in _items(proc, reader, delimiter, o.eof, limit, whole_lines=True):
                for item in items:
                    words = [part.replace(replace, item) for part in command]
                    if sum(len(encode(w)) + 1 for w in words) > limit:
                        proc.complain("argument list too long" if o.max_chars is None else "argument line too long")
                        raise _Stop(1)
                    await runner.start(words)
        else:
            await _gather(proc, o, reader, delimiter, command, runner, max_args, max_lines, limit)
    except _Stop as stop:
        runner.status = runner.status or stop.status
    except BaseException:
        await runner.abandon()
        raise
    await runner.finish()
    if o.arg_file is not None:
        await proc.close(reader)
    return runner.status


async def _gather(
    proc: Proc,
    o: XargsOptions,
    reader: Reader,
    delimiter: bytes | None,
    command: list[str],
    runner: _Runner,
    max_args: int | None,
    max_lines: int | None,
    limit: int,
) -> None:
    base = sum(len(encode(w)) + 1 for w in command)
    words: list[str] = []
    size, line_count, any_run = base, 0, False
    given = _items(proc, reader, delimiter, o.eof, limit, whole_lines=False, lines_matter=max_lines is not None)
    while True:
        try:
            items, line_end = await anext(given)
        except StopAsyncIteration:
            break
        except _Broken:
            if words:
                await runner.start([*command, *words])
            raise
        if max_args is None and max_lines is None:
            cost = len(encode("".join(items))) + len(items)
            if size + cost <= limit:
                words += items
                size += cost
                continue
        for place, item in enumerate(items, 1):
            cost = (len(item) if item.isascii() else len(encode(item))) + 1
            if base + cost > limit:
                if words:
                    await runner.start([*command, *words])
                raise _too_long(proc)
            if words and size + cost > limit:
                if o.exit and (max_args is not None or max_lines is not None):
                    proc.complain("argument list too long")
                    raise _Stop(1)
                await runner.start([*command, *words])
                any_run, words, size, line_count = True, [], base, 0
            words.append(item)
            size += cost
            line_count += line_end and place == len(items)
            if (max_args is not None and len(words) >= max_args) or (max_lines is not None and line_count >= max_lines):
                await runner.start([*command, *words])
                any_run, words, size, line_count = True, [], base, 0
    if words or (not any_run and not o.no_run):
        await runner.start([*command, *words])


async def _items(
    proc: Proc,
    reader: Reader,
    delimiter: bytes | None,
    eof: str | None,
    limit: int,
    *,
    whole_lines: bool,
    lines_matter: bool = False,
) -> AsyncIterator[tuple[list[str], bool]]:
    """Yield batches of input items, and whether the last item ends its line."""
    if delimiter is not None:
        async for block in _bounded_blocks(proc, reader, delimiter, limit, None):
            pieces = block.split(delimiter)
            if not pieces[-1]:
                pieces.pop()
            if delimiter != b"\0" and b"\0" in block:  # which ends an argument
                pieces = [piece.partition(b"\0")[0] for piece in pieces]
            items = [decode(piece) for piece in pieces]
            if lines_matter:
                for item in items:
                    yield [item], True
            else:
                yield items, True
            await proc.budget.yield_turn()
        return
    if not whole_lines and not lines_matter and eof is None:
        async for items in _plain_items(proc, reader, limit):
            yield items, False
            await proc.budget.yield_turn()
    carried, warned = b"", False
    async for raw in _bounded_lines(proc, reader, limit, _QUOTING if whole_lines else _SEPARATING):
        whole = b"".join((carried, raw)) if carried else raw
        carried = b""
        line = await offload_large(proc.budget, len(whole), partial(_line, whole, whole_lines))
        words, open_quote = line.words, line.open_quote
        if line.null and not warned:
            proc.complain(
                "WARNING: a NUL character occurred in the input.  It cannot be passed through in the argument "
                "list.  Did you mean to use the --null option?"
            )
            warned = True
        if open_quote:
            kind = "single" if open_quote == "'" else "double"
            yield words[:-1], False
            proc.complain(
                f"unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option"
            )
            raise _Broken(1)
        if line.continued and whole.endswith(b"\n"):
            carried = whole
            continue
        # An unterminated last word is not compared with -E.
        ended = words if whole_lines or whole[-1:] in (b"\n", b" ", b"\t") else words[:-1]
        if eof is not None and eof in ended:
            yield words[: words.index(eof)], True
            return
        # With -L a trailing blank joins the next line to this one.
        goes_on = lines_matter and line.last in (" ", "\t")
        if words:
            yield words, not goes_on
        await proc.budget.yield_turn()
    if carried:
        yield _line(carried, whole_lines, carried=True).words, True


class _Line(NamedTuple):
    """A parsed line of the input."""

    words: list[str]
    open_quote: str
    continued: bool
    null: bool
    last: str
    """Its last character."""


def _line(raw: bytes, whole: bool, carried: bool = False) -> _Line:
    text = decode(raw)
    body = text
    if text.endswith("\n") and not carried:
        body = text[:-1]
    if whole and not carried:
        body = body.lstrip(" \t\r\v\f")
    null = "\0" in body and not carried
    if null:
        body = re.sub(r"\0[^ \t\n]*", "", body)
    return _Line(*_split(body, whole), null, body[-1:])


async def _bounded_lines(proc: Proc, reader: Reader, limit: int, special: re.Pattern[bytes]) -> AsyncIterator[bytes]:
    async for block in _bounded_blocks(proc, reader, b"\n", limit, special):
        for line in block.split(b"\n")[:-1]:
            yield line + b"\n"
        if last := block[block.rfind(b"\n") + 1 :]:
            yield last


async def _bounded_blocks(
    proc: Proc, reader: Reader, delim: bytes, limit: int, special: re.Pattern[bytes] | None
) -> AsyncIterator[bytes]:
    """Yield blocks of whole lines. One that can only be a single word, as nothing special is in it, may be too long."""
    rest: list[bytes] = []
    held, open_ended = 0, False
    while block := await reader.read(PART):
        cut = block.rfind(delim) + 1
        if cut:
            yield b"".join([*rest, block[:cut]])
            rest, held, open_ended = [], 0, False
            block = block[cut:]
        if block:
            rest.append(block)
            held += len(block)
            reader.hold(held)
            open_ended = open_ended or (special is not None and special.search(block) is not None)
            if held > limit and not open_ended:
                raise _too_long(proc)
        await proc.budget.yield_turn()
    if rest:
        yield b"".join(rest)


def _too_long(proc: Proc) -> _Broken:
    proc.complain("argument line too long")
    return _Broken(1)


async def _plain_items(proc: Proc, reader: Reader, limit: int) -> AsyncIterator[list[str]]:
    """Yield batches of plain words up to the first special character; the rest stays unread."""
    rest = b""
    while block := await reader.read(PART):
        data = rest + block
        if not data.isascii() or _SPECIAL_BYTES.search(data) is not None:
            reader.unread(data)
            return
        if len(rest) > limit:
            raise _too_long(proc)
        cut = max(data.rfind(b"\n"), data.rfind(b" "), data.rfind(b"\t")) + 1
        if cut:
            yield data[:cut].decode("ascii").split()
        rest = data[cut:]
    if rest:
        yield [rest.decode("ascii")]


_WORD = re.compile(
    r"""((?:\A|[ \t\n])[ \t\n\r\v\f]+|[ \t\n])|'([^']*)'|"([^"]*)"|\\(.)|([^ \t\n'"\\]+)|(['"])|(\\)""", re.S
)


_SPECIAL = re.compile(r"""['"\\\r\v\f\x1c-\x1f]""")
_SPECIAL_BYTES = re.compile(rb"""['"\\\r\v\f\x1c-\x1f\0]""")
"""Characters that need the full word parser."""
_QUOTING = re.compile(rb"""\A[ \t\r\v\f]|['"\\\0]""")
"""Characters that may split a line with -I."""
_SEPARATING = re.compile(rb"""[ \t\r\v\f'"\\\0]""")
"""Characters that may split a line into words."""


def _split(text: str, whole: bool) -> tuple[list[str], str, bool]:
    """Return words of a line with quotes removed; also an open quote, and whether a backslash ends the line."""
    if whole and not any(c in text for c in "'\"\\"):
        return ([text] if text else []), "", False
    if not whole and text.isascii() and _SPECIAL.search(text) is None:
        return text.split(), "", False
    out: list[str] = []
    word: list[str] | None = None
    for found in _WORD.finditer(text):
        blank, single, double, escaped, plain, open_quote, backslash = found.groups()
        if blank is not None and not whole:
            if word is not None:
                out.append("".join(word))
            word = None
        elif open_quote is not None:
            return [*out, "".join(word or ())], open_quote, False
        elif backslash is not None:
            return (out if word is None else [*out, "".join(word)]), "", True
        else:
            word = [] if word is None else word
            word.append(next(piece for piece in (blank, single, double, escaped, plain) if piece is not None))
    if word is not None:
        out.append("".join(word))
    return out, "", False


class _Runner:
    """Runs command lines, at most `procs` at a time, and keeps the status."""

    def __init__(self, proc: Proc, o: XargsOptions, procs: int) -> None:
        self.proc, self.o = proc, o
        self.procs = procs or 64
        self.status = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.slots: list[int] = []
        self.stop: _Stop | None = None

    async def start(self, words: list[str]) -> None:
        if self.stop is not None:
            raise self.stop
        if self.o.verbose or self.o.interactive:
            text = " ".join(shown(w) for w in words)
            self.proc.stderr.write(encode(text + ("?..." if self.o.interactive else "\n")))
            if self.o.interactive:
                answer = await self.proc.stdin.readline() if self.o.arg_file is not None else b""
                if answer[:1] not in (b"y", b"Y"):
                    self.proc.stderr.write(b"\n")
                    return
        if self.procs == 1:
            await self._run(words, 0)
            await self.proc.budget.yield_turn()
            if self.stop is not None:
                raise self.stop
            return
        while len(self.tasks) >= self.procs:
            await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            done = {task for task in self.tasks if task.done()}
            for task in done:
                task.result()
            self.tasks -= done
        slot = next(i for i in range(self.procs) if i not in self.slots)
        self.slots.append(slot)
        self.tasks.add(asyncio.create_task(self._run(words, slot)))

    async def _run(self, words: list[str], slot: int) -> None:
        env = None
        if self.o.slot_var is not None:
            env = {**self.proc.env, self.o.slot_var: str(slot)}
        stdin = Null() if self.o.arg_file is None else self.proc.stdin
        status = await self.proc.run(words, stdin=stdin, env=env)
        if slot in self.slots:
            self.slots.remove(slot)
        if status == 255:
            self.proc.complain(f"{words[0]}: exited with status 255; aborting")
            self.stop = _Stop(124)
            self.status = 124
        elif status in (126, 127) and not await self._exists(words[0]):
            self.status = status
            self.stop = _Stop(status)
        elif (number := self._signal(status)) is not None:
            if number != _PIPE_SIGNAL or self.stop is None:  # the pipe is gone for all of them
                self.proc.complain(f"{words[0]}: terminated by signal {number}")
            self.stop = _Stop(125)
            self.status = 125
        elif status:
            self.status = 123

    def _signal(self, status: int) -> int | None:
        """Return the signal that a command died of; writing to a pipe that nothing reads is one."""
        if isinstance(status, BySignal):
            return status.number
        stdout = self.proc.stdout
        gone = status == 128 + _PIPE_SIGNAL and isinstance(stdout, PipeWriter) and stdout.broken
        return _PIPE_SIGNAL if gone else None

    async def _exists(self, word: str) -> bool:
        """Return whether a command could be started, so that a status like that of one that could not is its own."""
        from ramet.commands.framework.table import MODULES

        proc = self.proc
        known = MODULES if proc.services.commands is None else proc.services.commands
        if "/" not in word and (word in known or word in ("bash", "sh")):
            return True
        places = [word] if "/" in word else [f"{where or '.'}/{word}" for where in proc.env.get("PATH", "").split(":")]
        for place in places:
            try:
                stat = await proc.fs.stat(proc.path(place), follow=True)
            except OSError:
                continue
            if stat.is_file and (stat.mode or 0) & 0o111:
                return True
        return False

    async def finish(self) -> None:
        try:
            await asyncio.gather(*self.tasks)
        except BaseException:
            await self.abandon()
            raise
        self.tasks.clear()

    async def abandon(self) -> None:
        """Cancel running commands."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


COMMANDS = [
    Command(
        "xargs",
        xargs,
        XargsOptions,
        summary="Run COMMAND with arguments INITIAL-ARGS and more arguments read from input.",
        usage="[OPTION]... COMMAND [INITIAL-ARGS]...",
        operands_first=True,
        examples=[
            ("find . -name '*.o' -print0 | xargs -0 rm", "names with any character"),
            ("ls | xargs -I{} mv {} {}.bak", "one command per line"),
        ],
        original="GNU findutils 4.9.0",
        curly_quotes=True,
        stdin_error=StdinError("", "error closing file: {}", directory="error closing file"),
    )
]
