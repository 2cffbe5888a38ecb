"""`ShellOutput`: write to stdout and stderr, with the file and line that messages name."""

from __future__ import annotations

import errno
from functools import partial

from ramet.concurrency.offload import on_loop
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.core.streams import Writer
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import ShellError
from ramet.shell.interp.process.descriptors import Table
from ramet.shell.interp.run.maybe_async import Result
from ramet.shell.interp.state.frames import Frame, FunctionDef, Killed


class ShellOutput:
    """Output methods of a session."""

    __slots__ = ()
    budget: Budget
    fds: Table
    frames: list[Frame]
    functions: dict[str, FunctionDef]
    pending_output: list[str]
    interactive: bool
    line: int
    name: str
    origin: str
    line_shift: tuple[int, int] | None
    source: str
    traps: dict[str, str]

    @property
    def error_name(self) -> str:
        """The name before an error: the running file, else `$0`; `bash` in an interactive shell."""
        if self.interactive:
            return "bash"
        for frame in reversed(self.frames):
            if frame.source:
                return self.name if frame.source == "main" and self.origin != "stdin" else frame.source
        return self.source or self.name

    def line_now(self, line: int | None = None) -> int:
        """The line that is being run, or one of the same text, as bash counts."""
        shift, frames, further = self.line_shift, self.frames, 0
        if shift is not None and shift[1] == len(frames):
            further = shift[0]
        elif frames and frames[-1].function and (called := self.functions.get(frames[-1].name)) is not None:
            further = called.further
        return (self.line if line is None else line) + further

    def message_prefix(self) -> str:
        """`bash: line N: `, which stands before a message."""
        return f"{self.error_name}: " + (f"line {self.line_now()}: " if self.line and not self.interactive else "")

    def complain(self, *message: str) -> None:
        """Write `bash: line N: message` to stderr."""
        self.err(f"{self.message_prefix()}{''.join(message)}\n")

    def complain_once(self, error: Exception) -> None:
        """Report an error where it happened, while its redirections hold; a second call does nothing."""
        if not getattr(error, "reported", False):
            self.complain(str(error))
            error.reported = True  # type: ignore[attr-defined]

    def error(self, message: str, status: int = 1) -> int:
        self.complain(message)
        return status

    def err(self, text: str) -> None:
        if self.pending_output:
            said = "".join(self.pending_output)
            self.pending_output.clear()
            if said:
                self.out(encode(said))
        description = self.fds.get(2)
        if description is not None and description.writer is not None:
            try:
                on_loop(partial(description.writer.write, encode(text)))
            except OSError:
                return  # stderr itself fails

    async def say(self, text: str) -> None:
        """Write to stderr and let the event loop run."""
        self.err(text)
        await self.budget.yield_turn()

    def out(self, data: bytes, command: str = "") -> Result:
        """Write to stdout: 0, an awaitable when it is full, 1 after a complaint when that failed."""
        description = self.fds.get(1)
        writer = None if description is None else description.writer
        if writer is None:
            return self.error(f"{command}: write error: Bad file descriptor") if data else 0
        try:
            writer.write(data)
        except OSError as error:
            return self.write_failed(error, command)
        if writer.full:
            return self._drain(writer, command)
        return 0

    async def _drain(self, writer: Writer, command: str) -> int:
        try:
            await writer.drain()
        except OSError as error:
            return self.write_failed(error, command)
        return 0

    def write_failed(self, error: OSError, command: str) -> int:
        if error.errno == errno.EPIPE and self.traps.get("PIPE") != "":
            raise Killed(13)
        return self.error(f"{command}: write error: {reason(error)}")


def message_of(error: Exception) -> tuple[str, ...]:
    """Return the message of an error in parts."""
    return error.parts if isinstance(error, ShellError | ArithFailure) else (str(error),)
