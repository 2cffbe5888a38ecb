"""The errors of expansion and assignment: a message for stderr and how much of the script they end."""

from __future__ import annotations

from collections.abc import Callable


class ShellError(Exception):
    """Something the shell reports as `name: line N: message`.

    The message may be given in parts.
    """

    def __init__(self, message: str | tuple[str, ...], status: int = 1) -> None:
        super().__init__(message)
        self.parts = (message,) if isinstance(message, str) else message
        self.status = status
        self.reported = False

    @property
    def message(self) -> str:
        return "".join(self.parts)

    def __str__(self) -> str:
        return self.message


class Fatal(ShellError):
    """Ends a shell that is not interactive: `${x:?}`, an unset variable under `set -u`, a bad substitution."""


class LineError(ShellError):
    """Ends the complete command that is being run (all of its line); the script goes on behind it."""


class PosixFatal(LineError):
    """Ends the complete command, and in POSIX mode the shell: a bad substitution, an assignment that cannot be made."""


class ErrexitExempt(LineError):
    """Ends the complete command, but does not end a shell under `set -e`."""


class BadNumber(ErrexitExempt):
    """Text that is not an arithmetic expression where a number is wanted."""


class BadSubscript(BadNumber):
    """The same in a subscript: the command that has it reports nothing more."""


class Overflow(ErrexitExempt):
    """Commands nest too deeply: ends everything that nests, also what would go on behind a lesser error."""


class TooMany(ErrexitExempt):
    """More arguments than a builtin that directs the flow can take: ends the line of the script, also in `eval`."""


class TooLong(ErrexitExempt):
    """An expression too long to evaluate on the event loop; a caller that can wait offloads `resume`."""

    resume: Callable[[], int] | None = None


class Readonly(PosixFatal):
    """An assignment to a variable that must not change."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: readonly variable")
        self.name = name
