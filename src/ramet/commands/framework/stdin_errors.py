"""A standard input that cannot be read, because it is closed or a directory: what each command says, and what it does.

Rule: most commands do not know. They are given an input that tells on the first read what the original tells, and then
is at its end or, where the original gives up, ends the command.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from ramet.commands.framework.messages import TYPOGRAPHIC, typographic
from ramet.core.errors import fail, strerror
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a command takes an input that cannot be read; `{}` is the reason, `{last}` the last word of the command."""

    reading: str | None = None
    """Said by the first read; nothing where it is empty. None: reading fails, and the command says so itself."""
    closing: str = ""
    """Said at the end of what is closed: it cannot be closed again."""
    status: int = 1
    fatal: bool = False
    """Whether the command ends there; else the input is an empty one."""
    directory: str | None = None
    """Said instead of `reading` of a directory."""


def _for(names: str, rule: Refusal) -> dict[str, Refusal]:
    return dict.fromkeys(names.split(), rule)


_GZIP: Final = Refusal("gzip: standard input: {}", directory="\ngzip: stdin: {}", fatal=True)
REFUSALS: Final[dict[str, Refusal]] = {
    **_for("nl cut paste expand unexpand fold", Refusal("-: {}", "-: {}")),
    **_for(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum cksum", Refusal(closing="standard input: {}")
    ),
    **_for("tr base64 base32 basenc join", Refusal("read error: {}", fatal=True)),
    **_for("rm mv cp ln xargs", Refusal("", "error closing file: {}", directory="error closing file")),
    **_for("strings factor sqlite3", Refusal("", status=0)),
    **_for("hexdump hd", Refusal("{last}: {}", status=0)),
    **_for("gzip gunzip zcat", _GZIP),
    "cat": Refusal("-: {}", "closing standard input: {}"),
    "tac": Refusal("'standard input': read error: {}", "-: {}"),
    "rev": Refusal("stdin: 0: {}"),
    "tee": Refusal("read error: {}", "standard input: {}"),
    "head": Refusal("error reading 'standard input': {}", "-: {}"),
    "wc": Refusal(closing="-: {}"),
    "tail": Refusal(closing="-: {}"),
    "fmt": Refusal(closing="closing standard input: {}"),
    "dd": Refusal(closing="closing input file 'standard input': {}"),
    "date": Refusal("", "'standard input': {}", status=0),
    "od": Refusal("'standard input': {}", "standard input: {}"),
    "xxd": Refusal("{}", status=2, fatal=True),
    "column": Refusal("read failed: {}", fatal=True),
    "csplit": Refusal("read error: {}", fatal=True),
    "sort": Refusal("stat failed: -: {}", status=2, fatal=True, directory="read failed: -: {}"),
    "split": Refusal("-: {}", fatal=True),
    "tsort": Refusal("", "standard input: {}", status=0),
    "numfmt": Refusal("error reading input: {}", status=0),
    "iconv": Refusal("error while reading the input: {}", fatal=True),
    "bc": Refusal("(standard_in) 1: read() in flex scanner failed", fatal=True),
    "envsubst": Refusal('error while reading "standard input": {}', fatal=True),
    "tar": Refusal(
        "-: Cannot read: {}\ntar: At beginning of tape, quitting now\ntar: Error is not recoverable: exiting now",
        status=2,
        fatal=True,
    ),
    "patch": Refusal("**** fstat : {}", status=2, fatal=True, directory="**** read error : {}"),
}
_UNNAMED: Final = frozenset(("gzip", "gunzip", "zcat", "bc"))
"""Commands whose messages do not begin with the name they were called by."""


class _Ended(Exception):
    """A command that gives up."""


class _Unreadable(Reader):
    __slots__ = ("asked", "proc", "refusal", "rule")

    def __init__(self, proc: Proc, rule: Refusal) -> None:
        super().__init__()
        self.proc, self.rule, self.refusal, self.asked = proc, rule, proc.stdin.refused, False

    @property
    def refused(self) -> int:  # type: ignore[override]
        if self.rule.reading is not None:
            return 0
        self.asked = True
        return self.refusal

    async def _fill(self) -> bytes:
        said = self.rule.reading
        if said is None:
            self.asked = True
            raise fail(self.refusal, "-")
        if not self.asked:
            self.asked = True
            rule = self.rule
            directory = rule.directory if self.refusal == errno.EISDIR else None
            self.say(said if directory is None else directory)
        if self.rule.fatal:
            raise _Ended
        return b""

    def say(self, form: str) -> None:
        if not form:
            return
        proc = self.proc
        name = proc.argv[0].rpartition("/")[2]
        message = form.format(strerror(self.refusal), last=proc.argv[-1])
        if name in TYPOGRAPHIC:
            message = typographic(proc, message)
        proc.stderr.write(encode(f"{message}\n" if name in _UNNAMED else f"{proc.argv[0]}: {message}\n"))


async def without_input(proc: Proc, rule: Refusal, run: Callable[[Proc], Awaitable[int]]) -> int:
    """Run a command whose standard input cannot be read."""
    reader = _Unreadable(proc, rule)
    proc.stdin = reader
    try:
        status = await run(proc)
    except _Ended:
        status = rule.status
    if not reader.asked:
        return status
    if reader.refusal == errno.EBADF and rule.closing:
        reader.say(rule.closing)
        return status or 1
    return status or rule.status
