"""Syntax errors of shell text, worded as bash words them; the caller adds the prefix ``bash: line N: ``."""

from __future__ import annotations


class SyntaxFailure(Exception):
    """The text is not shell.

    ``message`` is what bash prints after its prefix, ``second`` what it prints after the same prefix in a second line
    (mostly the offending line between a backtick and a quote), or None. ``line`` is the number to name.

    ``status`` is that of the failed command; None means that ``$?`` stays what it was, which is what bash does for an
    error inside ``[[ ]]`` (``eval`` makes it 2). ``fatal`` is False where bash goes on with the next line: an error
    inside ``a=(...)``. Otherwise a shell that is not interactive stops. ``lenient``: a ``$?`` that is not 0 stays too.
    ``inner``: the error is in a substitution, which ends the shell also where its text is only evaluated; of one in
    ``array`` that holds for subshells. ``condition``: the error is inside ``[[ ]]``.
    """

    def __init__(
        self,
        message: str,
        line: int,
        second: str | None = None,
        status: int | None = 2,
        fatal: bool = True,
        lenient: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.second = second
        self.status = status
        self.fatal = fatal
        self.lenient = lenient
        self.inner = False
        self.condition = False
        self.array = not fatal
        self.more: list[tuple[int, str]] = []
        """What the constructs around this one say to it, with their lines."""

    def lines(self, prefix: str) -> list[str]:
        """The messages to print, each with ``prefix`` (such as ``bash: ``) and the line number."""
        head = f"{prefix}line {self.line}: "
        lines = [head + self.message] if self.message else []
        if self.second is not None:
            lines.append(head + self.second)
        return lines + [f"{prefix}line {line}: {message}" for line, message in self.more]


class Unready(Exception):
    """A command goes on beyond the horizon of the parser, who has put everything back to where it began."""


class TooDeep(SyntaxFailure):
    """Constructs are nested deeper than any real script; a limit of ours, not of bash."""
