"""The streams of a running awk program: main input, getline, output files, pipes and coprocesses.

- Generated code calls these methods; nothing here knows the program.
"""

from __future__ import annotations

import asyncio
import errno
import re
from typing import TypeVar

from ramet.commands.awk.run.records import Records
from ramet.commands.awk.run.state import AwkSource, Sink, State, Unbuffered
from ramet.commands.awk.run.values import Field, num
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE, unescape
from ramet.commands.awk.syntax.tree import AwkError
from ramet.concurrency.offload import checkpoint, in_thread
from ramet.concurrency.tasks import give_up
from ramet.core.errors import reason
from ramet.core.signals import BySignal
from ramet.core.streams import BytesReader, pipe


def _encoded(parts: list[str]) -> bytes:
    return "".join(parts).encode("utf-8", "surrogateescape")


class NextRecord(Exception):
    """`next` inside a function."""


class NextFile(Exception):
    """`nextfile` inside a function."""


class ExitProgram(Exception):
    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)?=", re.ASCII)
_FLUSH = 1 << 16
Stream = TypeVar("Stream", Sink, AwkSource)


class Runtime(State):
    # ------------------------------------------------------------------ main input

    def next_now(self) -> bool:
        """Make the next record current, if one is split already."""
        main = self.main
        if main is None or main.at >= len(main.batch):
            return False
        self.set_record(main.batch[main.at])
        self._count(main)
        return True

    def _count(self, main: Records) -> None:
        at = main.at
        main.at = at + 1
        self.NR += 1.0
        self.FNR += 1.0
        self.special["RT"] = main.term if main.terms is None else main.terms[at]

    async def fill(self) -> bool:
        """Read more records of the main input; return False at its end."""
        await self.yield_turn()
        while True:
            if self.main is not None:
                try:
                    if await self.main.fill(self.rs, self.icase):
                        return True
                except OSError as error:
                    if error.errno == errno.EPIPE:
                        raise
                    self.complain_input(error)
                await self.close_main()
            if not await self.open_next():
                return False

    def odd(self, char: str) -> None:
        """Report an unknown escape sequence of the command line."""
        self.proc.complain(f"warning: escape sequence `\\{char}' treated as plain `{char}'")

    def warn(self, message: str) -> None:
        """Print a warning with the input position."""
        self.flush()
        self.proc.complain(f"{self.place()}: {self.reading()}warning: {message}")

    def complain_input(self, error: OSError) -> None:
        what = reason(error)
        if error.errno == errno.EISDIR:
            self.flush()
            where = f"{place}: " if (place := self.reached()) else ""
            self.proc.complain(f"{where}warning: command line argument `{self.main_name}' is a directory: skipped")
        else:
            raise AwkError(f"fatal: error reading input file `{self.main_name}': {what}")

    async def close_main(self) -> None:
        if self.main is not None:
            reader, self.main = self.main.reader, None
            await self.proc.close(reader)
            await self.end_file()
            await self.end_edit()

    async def end_edit(self) -> None:
        """Replace the file by what was printed since it was opened."""
        if self.edit is not None and self.edit.busy:
            self.flush()
            self.stdout = self.proc.stdout
            suffix = self.namespace.get(f"v_inplace{IN_NAMESPACE}suffix") or self.namespace.get("v_INPLACE_SUFFIX")
            await self.edit.end(self.text(suffix))

    async def begin_file(self) -> bool:
        """Run BEGINFILE rules, and return whether to read the file; programs with such rules replace this."""
        return True

    async def end_file(self) -> None:
        """Run ENDFILE rules; programs with such rules replace this."""

    async def open_next(self) -> bool:
        """Open the next operand, after assignments before it; stdin if there was no file."""
        while self.argument < int(num(self.special.get("ARGC", 1.0))):
            key = str(self.argument)
            self.argument += 1
            word = self.text(self.argv.get(key))
            if not word:
                continue
            if self.sandbox and word not in self.given:
                raise AwkError(f"fatal: cannot add a new file ({word}) to ARGV in sandbox mode")
            if _ASSIGNMENT.match(word):
                name, _, value = word.partition("=")
                self.assign(name, Field(unescape(value, self.odd)))
                continue
            self.used_file = True
            self.main_name = word
            self.special["ARGIND"] = float(self.argument - 1)
            try:
                reader = await self.proc.open(word)
            except OSError as error:
                if await self._skipped(word, error):
                    continue
                message = f"fatal: cannot open file `{word}' for reading: {reason(error)}"
                raise AwkError(f"{place}: {message}" if (place := self.reached()) else message) from None
            if await self._open(Records(reader, self.proc.budget, self.utf8), word):
                return True
        if not self.used_file:
            self.used_file = True
            self.main_name = "-"
            return await self._open(Records(self.proc.stdin, self.proc.budget, self.utf8), None)
        return False

    async def _skipped(self, word: str, error: OSError) -> bool:
        """Return whether the program goes on without a file that cannot be opened."""
        if self.watches_files:
            self.set_record("")
            self.FNR = 0.0
            self.special["FILENAME"] = word
            self.special["ERRNO"] = reason(error)
            if not await self.begin_file():
                return True
        if error.errno == errno.EISDIR:
            self.complain_input(error)
            return True
        return False

    async def _open(self, records: Records, name: str | None) -> bool:
        self.main = records
        self.FNR = 0.0
        self.special["FILENAME"] = name if name is not None else "-"
        if self.edit is not None and name is not None:
            self.flush()
            await self.edit.begin(name)
            self.stdout = self.edit.writer
        if self.watches_files:
            self.set_record("")
            self.special["ERRNO"] = ""
            if not await self.begin_file():
                await self.close_main()
                return False
        return True

    async def next_file(self) -> None:
        await self.close_main()

    async def getline_main(self, keep: bool) -> float:
        """`getline` from the main input; with `keep` the record goes to `got` instead of `$0`."""
        main = self.main
        if main is None or main.at >= len(main.batch):
            if not await self.fill():
                return 0.0
            main = self.main
        assert main is not None
        text = main.batch[main.at]
        self._count(main)
        if keep:
            self.got = Field(text)
        else:
            self.set_record(text)
        return 1.0

    async def getline_file(self, name: str, keep: bool) -> float:
        key = ("<", name)
        if key not in self.sources:
            self._redirects()
            self._named("<", name)
            try:
                reader = await self.proc.open(name)
            except OSError as error:
                self.special["ERRNO"] = reason(error)
                return -1.0
            self.sources[key] = self._numbered(AwkSource(Records(reader, self.proc.budget, self.utf8)))
        return await self._getline(self.sources[key], keep)

    async def getline_command(self, command: str, keep: bool) -> float:
        key = ("|", command)
        if key not in self.sources:
            self._redirects()
            self._named("|", command)
            self.flush()
            reader, writer = pipe()

            async def run() -> int:
                try:
                    return await self.proc.run(["sh", "-c", command], stdout=writer, env=self.environment())
                except BrokenPipeError:
                    return 141
                finally:
                    writer.close_now()

            self.sources[key] = self._numbered(
                AwkSource(Records(reader, self.proc.budget, self.utf8), asyncio.ensure_future(run()))
            )
        return await self._getline(self.sources[key], keep)

    async def getline_coprocess(self, command: str, keep: bool) -> float:
        key = ("|&", command)
        if key not in self.sources:
            await self._coprocess(command)
        if key in self.sinks:
            self.sinks[key].flush()
        return await self._getline(self.sources[key], keep)

    async def _coprocess(self, command: str) -> None:
        """Start a command that the program both writes to and reads from."""
        self._redirects()
        self.flush()
        key = ("|&", command)
        read_end, to = pipe()
        back, write_end = pipe()

        async def run() -> int:
            try:
                return await self.proc.run(
                    ["sh", "-c", command], stdin=read_end, stdout=write_end, env=self.environment()
                )
            except BrokenPipeError:
                return 141
            finally:
                read_end.close_now()
                write_end.close_now()

        self.sinks[key] = Sink(to)
        self.sources[key] = AwkSource(Records(back, self.proc.budget, self.utf8), asyncio.ensure_future(run()))

    def _redirects(self) -> None:
        if self.sandbox:
            raise AwkError("fatal: redirection not allowed in sandbox mode")

    def _named(self, kind: str, name: str) -> None:
        if not name:
            raise AwkError(f"fatal: expression for `{kind}' redirection has null string value")

    def _numbered(self, stream: Stream) -> Stream:
        self.opened += 1
        stream.serial = self.opened
        return stream

    def environment(self) -> dict[str, str] | None:
        """Return what commands see as their environment, once the program has changed it."""
        changed = {str(name): str(self.text(value)) for name, value in self.environ.items()}
        return None if not self.utf8 or changed == self.proc.env else changed

    async def _getline(self, source: AwkSource, keep: bool) -> float:
        records = source.records
        if records.at >= len(records.batch):
            try:
                if not await records.fill(self.rs, self.icase):
                    return 0.0
            except OSError as error:
                self.special["ERRNO"] = reason(error)
                return -1.0
        at = records.at
        records.at += 1
        self.special["RT"] = records.term if records.terms is None else records.terms[at]
        if keep:
            self.got = Field(records.batch[at])
        else:
            self.set_record(records.batch[at])
        return 1.0

    # ------------------------------------------------------------------ output

    def flush(self) -> None:
        if self.out and not in_thread():  # a thread leaves this to the task that waits for it
            self.stdout.write(_encoded(self.out))
            self.out.clear()

    def tidy(self) -> None:
        """Check the budget, and bound the buffered output; loops call this."""
        self.proc.budget.check()
        checkpoint()
        if len(self.out) > 4096:
            self.flush()

    def due(self) -> bool:
        """Return whether a loop that can wait should."""
        out = self.out
        return len(out) > 4096 or self.stdout.full or (out and len(out[0]) > _FLUSH) or self.proc.budget.check()

    async def yield_turn(self) -> None:
        """Flush and drain output, and yield the event loop."""
        if len(self.out) > 4096 or (self.out and len(self.out[0]) > _FLUSH):
            self.flush()
        if self.stdout.full:
            self.flush()
            await self.stdout.drain()
        await self.proc.budget.yield_turn()

    async def sink(self, kind: str, name: str) -> Sink:
        """Return the output that `print > name`, `>> name` or `| name` writes to."""
        key = (kind if kind[0] == "|" else ">", name)
        found = self.sinks.get(key)
        if found is not None:
            return found
        self._redirects()
        if kind == "|&":
            await self._coprocess(name)
            return self.sinks[key]
        self._named(kind, name)
        if kind == "|":
            self.flush()
            made = Sink(None, name)
        elif name in ("/dev/stdout", "/dev/fd/1", "-"):
            made = _Standard(self)
        else:
            try:
                kept = Unbuffered if name in ("/dev/stderr", "/dev/fd/2") else Sink
                made = kept(await self.proc.create(name, append=kind == ">>"))
            except OSError as error:
                raise AwkError(f"fatal: cannot redirect to `{name}': {reason(error)}") from None
        self.sinks[key] = self._numbered(made)
        return made

    async def close(self, name: str, end: str = "") -> float:
        """close(): the exit status of a command, 0 for a file, -1 when nothing of that name is open.

        Of a command that is both written to and read from, `end` may close only the one or the other direction. Of
        a file that is both, what was opened last is closed.
        """
        if end not in ("", "to", "from"):
            raise AwkError("fatal: close: second argument must be `to' or `from'")
        self.flush()
        sinks = [(kind, name) for kind in (">", "|", "|&") if (kind, name) in self.sinks and end != "from"]
        sources = [(kind, name) for kind in ("<", "|", "|&") if (kind, name) in self.sources and end != "to"]
        if len(sinks) + len(sources) > 1 and ("|&", name) not in sinks:
            last = max([self.sinks[key].serial for key in sinks] + [self.sources[key].serial for key in sources])
            sinks = [key for key in sinks if self.sinks[key].serial == last]
            sources = [key for key in sources if self.sources[key].serial == last]
        status = -1.0
        if not sinks and not sources:
            self.special["ERRNO"] = "close of redirection that was never opened"
        for key in sinks:
            status = await self._close_sink(self.sinks.pop(key))
        for key in sources:
            status = await self._close_source(self.sources.pop(key))
        return status

    async def _close_sink(self, sink: Sink) -> float:
        if sink.command is not None:
            data = "".join(sink.parts).encode("utf-8", "surrogateescape")
            status = await self.proc.run(["sh", "-c", sink.command], stdin=BytesReader(data), env=self.environment())
            return self.ended(status)
        sink.flush()
        if sink.writer is not None:
            await self.proc.close(sink.writer)
        return 0.0

    async def _close_source(self, source: AwkSource) -> float:
        await self.proc.close(source.records.reader)
        if source.task is not None:
            return self.ended(await source.task)
        return 0.0

    def ended(self, status: int) -> float:
        """Return the status of a command as the program sees it: 256 and the number of the signal that ended it."""
        if isinstance(status, BySignal):
            return float(status.number + (256 if self.extensions else 0))
        return float(status)

    async def abandon(self) -> None:
        """End all commands of a cancelled program."""
        for key in [key for key, sink in self.sinks.items() if sink.command is not None]:
            del self.sinks[key]
        await give_up([source.task for source in self.sources.values() if source.task is not None])
        for source in self.sources.values():
            source.task = None

    async def close_all(self) -> None:
        """Close all streams: commands run before the rest of the output is written, as in gawk."""
        for key in list(self.sinks):
            await self._close_sink(self.sinks.pop(key))
        for key in list(self.sources):
            await self._close_source(self.sources.pop(key))
        self.flush()

    async def system(self, command: str) -> float:
        if self.sandbox:
            raise AwkError("fatal: 'system' function not allowed in sandbox mode")
        self.flush()
        for sink in self.sinks.values():
            sink.flush()
        return self.ended(await self.proc.run(["sh", "-c", command], env=self.environment()))

    def fflush(self, name: str = "") -> float:
        self.flush()
        if name and not any(known == name for _, known in self.sinks):
            self.proc.complain(f"{self.place()}: warning: fflush: `{name}' is not an open file, pipe or co-process")
            return -1.0
        for sink in self.sinks.values():
            sink.flush()
        return 0.0


class _Standard(Sink):
    """`print > "/dev/stdout"`: the same stream as plain print."""

    __slots__ = ("_runtime",)

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(None)
        self._runtime = runtime

    def write(self, text: str) -> None:
        self._runtime.out.append(text)


__all__ = ["ExitProgram", "NextFile", "NextRecord", "Runtime"]
