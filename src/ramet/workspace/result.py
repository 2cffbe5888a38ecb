"""`IOResult`: output, exit code and figures of an execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ramet.core.errors import RametError
from ramet.core.paths import decode

if TYPE_CHECKING:
    from ramet.workspace.estimate import Estimate


class CommandFailed(RametError):
    """Raised by `IOResult.check` for a non-zero exit code."""

    def __init__(self, result: IOResult) -> None:
        self.result = result
        tail = decode(result.stderr).strip().splitlines()[-1:] or ["no message on stderr"]
        super().__init__("command_failed", f"exit code {result.exit_code}: {tail[0]}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.result,)


@dataclass(frozen=True, slots=True)
class IOResult:
    """Output and exit code of one execution, and the bytes read and written per mount."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0
    timed_out: bool = False
    truncated: bool = False
    """The output exceeded its limit; the exit code is not 0."""
    bytes_read: Mapping[str, int] = field(default_factory=dict)
    bytes_written: Mapping[str, int] = field(default_factory=dict)
    cache_hits: int = 0
    duration: float = 0.0
    estimate: Estimate | None = None
    """The estimated cost, with `provision=True`."""

    @property
    def text(self) -> str:
        """stdout as text; bytes that are not UTF-8 survive as surrogates."""
        return decode(self.stdout)

    @property
    def error_text(self) -> str:
        return decode(self.stderr)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def check(self) -> IOResult:
        """Return this result; raises `CommandFailed` when the exit code is not 0."""
        if self.exit_code:
            raise CommandFailed(self)
        return self

    def __str__(self) -> str:
        return self.text
