"""What goes wrong while reading shell text, worded as bash words it; the caller adds the ``bash: line N: ``
prefix."""

from __future__ import annotations


class SyntaxFailure(Exception):
    """The text is not shell.

    ``message`` is what bash prints after its prefix; ``source``, when not None, is the offending line, which bash
    prints in a second
    message, between a backtick and a quote, under the same prefix. ``line`` is the line to name.
    ``status`` is the status of the failed command; None means that ``$?`` stays what it was (an error inside ``[[
    ]]`` outside eval).
    ``fatal`` is False where bash goes on with the next line (an error inside ``a=(...)``); otherwise a
    non-interactive shell
    stops.
    """

    def __init__(
        self, message: str, line: int, source: str | None = None, status: int | None = 2, fatal: bool = True
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.source = source
        self.status = status
        self.fatal = fatal

    def lines(self, prefix: str) -> list[str]:
        """The messages to print, each with ``prefix`` (such as ``bash: ``) and the line number."""
        if not self.message:
            return []
        head = f"{prefix}line {self.line}: "
        shown = [head + self.message]
        if self.source is not None:
            shown.append(f"{head}`{self.source}'")
        return shown


class TooDeep(SyntaxFailure):
    """Constructs are nested deeper than any real script; a limit of ours, not of bash."""
