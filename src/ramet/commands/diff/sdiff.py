"""sdiff: two files side by side, and with -o merged by the answers of whoever reads; nothing is written unasked."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, replace

from ramet.commands.diff import output as output
from ramet.commands.diff.changes import Change
from ramet.commands.diff.diff import prepare
from ramet.commands.diff.files import Comparison, pair
from ramet.commands.diff.options import DiffOptions
from ramet.commands.framework.command import Command, flag, several, value
from ramet.commands.framework.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import Writer


@dataclass(frozen=True, slots=True)
class SdiffOptions:
    output: str | None = value("-o", "--output", metavar="FILE", help="operate interactively, sending output to FILE")
    width: str = value("-w", "--width", metavar="NUM", default="130", help="output at most NUM print columns")
    left_column: bool = flag("-l", "--left-column", help="output only the left column of common lines")
    suppress: bool = flag("-s", "--suppress-common-lines", help="do not output common lines")
    ignore_case: bool = flag("-i", "--ignore-case", help="consider upper- and lower-case to be the same")
    all_space: bool = flag("-W", "--ignore-all-space", help="ignore all white space")
    space_change: bool = flag("-b", "--ignore-space-change", help="ignore changes in the amount of white space")
    blank_lines: bool = flag("-B", "--ignore-blank-lines", help="ignore changes whose lines are all blank")
    text: bool = flag("-a", "--text", help="treat all files as text")
    minimal: bool = flag("-d", "--minimal", help="try hard to find a smaller set of changes")
    tab_expansion: bool = flag("-E", "--ignore-tab-expansion", help="ignore changes due to tab expansion")
    trailing: bool = flag("-Z", "--ignore-trailing-space", help="ignore white space at line end")
    ignore_re: tuple[str, ...] = several(
        "-I", "--ignore-matching-lines", metavar="RE", help="ignore changes where all lines match RE"
    )
    strip_cr: bool = flag("--strip-trailing-cr", help="strip trailing carriage return on input")
    expand_tabs: bool = flag("-t", "--expand-tabs", help="expand tabs to spaces in output")
    tabsize: str = value("--tabsize", metavar="NUM", default="8", help="tab stops at every NUM print columns")
    large: bool = flag("-H", "--speed-large-files", help="assume large files, many scattered small changes")
    program: str | None = value("--diff-program", metavar="PROGRAM", help="use PROGRAM to compare files")


_SWITCHES = {
    "left_column": "--left-column",
    "suppress": "--suppress-common-lines",
    "ignore_case": "-i",
    "all_space": "-w",
    "space_change": "-b",
    "blank_lines": "-B",
    "text": "-a",
    "minimal": "-d",
    "tab_expansion": "-E",
    "trailing": "-Z",
    "strip_cr": "--strip-trailing-cr",
    "expand_tabs": "-t",
    "large": "-H",
}
"""What the switches are called where another program compares."""


async def sdiff(proc: Proc, o: SdiffOptions, operands: list[str]) -> int:
    if o.program is not None and o.output is None:
        switches = [switch for name, switch in _SWITCHES.items() if getattr(o, name)]
        patterns = [word for pattern in o.ignore_re for word in ("-I", pattern)]
        sizes = ["-W", o.width, f"--tabsize={o.tabsize}"]
        return await proc.run([o.program, "-y", *switches, *sizes, *patterns, "--", *operands])
    options = DiffOptions(
        format="side-by-side",
        width=o.width,
        left_column=o.left_column,
        suppress_common=o.suppress,
        ignore_case=o.ignore_case,
        all_space=o.all_space,
        space_change=o.space_change,
        blank_lines=o.blank_lines,
        text=o.text,
        minimal=o.minimal,
        tab_expansion=o.tab_expansion,
        trailing=o.trailing,
        ignore_re=o.ignore_re,
        strip_cr=o.strip_cr,
        expand_tabs=o.expand_tabs,
        tabsize=o.tabsize,
        large=o.large,
    )
    # The comparison speaks as diff, which the original starts for it.
    job = await prepare(proc if o.output is not None else replace(proc, argv=["diff", *proc.argv[1:]]), options)
    first, second = operands
    if o.output is None:
        await pair(job, first, second)
        return job.status
    return await _merged(job, o.output, first, second)


async def _merged(job: Comparison, target: str, first: str, second: str) -> int:
    proc = job.proc
    kinds = []
    for word in (first, second):
        try:
            kinds.append(word != "-" and (await proc.fs.stat(proc.path(word), follow=True)).is_dir)
        except OSError as error:
            proc.complain(f"{word}: {reason(error)}")
            return 2
    if all(kinds):
        proc.complain("both files to be compared are directories")
        return 2
    writer = await proc.create(target)
    try:
        job.merge = _Dialogue(job, writer).run
        await pair(job, first, second)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        proc.complain(f"{error.filename or target}: {reason(error)}")
        return 2
    finally:
        await proc.close(writer)
    return job.status


_HELP = b"""\
ed:\tEdit then use both versions, each decorated with a header.
eb:\tEdit then use both versions.
el or e1:\tEdit then use the left version.
er or e2:\tEdit then use the right version.
e:\tDiscard both versions then edit a new one.
l or 1:\tUse the left version.
r or 2:\tUse the right version.
s:\tSilently include common lines.
v:\tVerbosely include common lines.
q:\tQuit.
"""
_ANSWERS = frozenset(["l", "r", "1", "2", "s", "v", "q", "e", "ed", "eb", "el", "er", "e1", "e2"])


class _Dialogue:
    """Every change is shown and an answer read, until one of them takes a version."""

    def __init__(self, job: Comparison, writer: Writer) -> None:
        self.job, self.proc, self.writer = job, job.proc, writer
        self.quiet = False

    async def run(self, a: output.Side, b: output.Side, found: list[Change]) -> None:
        last = not ((a.ended and a.lines) or (b.ended and b.lines))
        for group in output.side_groups(a, b, found, self.job.style):
            rows = b"" if group.common and self.quiet else b"".join(group.rows)
            if last and group.span.b == len(a.lines) and group.span.d == len(b.lines):
                rows = rows.removesuffix(b"\n")
            await self.proc.emit(rows)
            span = group.span
            if group.common:
                await self.put(_text(a, span.a, span.b))
            elif not await self.ask(a, b, span):
                self.job.status = 2
                return

    async def put(self, data: bytes) -> None:
        self.writer.write(data)
        if self.writer.full:
            await self.writer.drain()

    async def ask(self, a: output.Side, b: output.Side, span: Change) -> bool:
        """Whether a version was chosen."""
        left, right = _text(a, span.a, span.b), _text(b, span.c, span.d)
        while True:
            await self.proc.emit(b"%")
            line = await self.proc.stdin.readline()
            answer = line.translate(None, b" \t\r\v\f\n").decode("latin-1")
            if not line or answer == "q":
                return False
            if answer not in _ANSWERS:
                self.proc.stderr.write(_HELP)
            elif answer in "sv":
                self.quiet = answer == "s"
            elif answer[0] != "e":
                await self.put(left if answer in "l1" else right)
                return True
            else:
                versions: dict[str, Callable[[], bytes]] = {
                    "": lambda: b"",
                    "l": lambda: left,
                    "1": lambda: left,
                    "r": lambda: right,
                    "2": lambda: right,
                    "b": lambda: left + right,
                    "d": lambda: _headed("---", a, span.a, span.b, left) + _headed("+++", b, span.c, span.d, right),
                }
                return await self.edit(versions[answer[1:]]())

    async def edit(self, draft: bytes) -> bool:
        proc = self.proc
        editor = proc.env.get("EDITOR") or "ed"
        base = proc.env.get("TMPDIR") or "/tmp"
        name = f"{base}/sdiff{abs(hash((proc.now(), id(self)))) % 10**6:06d}"
        writer = await proc.create(name)
        writer.write(draft)
        await proc.close(writer)
        try:
            status = await proc.run([editor, name]) if " " not in editor else 127
            if status:
                told = {126: "could not be invoked", 127: "not found"}.get(status, f"failed (exit status {status})")
                proc.complain(f"subsidiary program '{editor}' {told}")
                return False
            await self.put(await slurp(proc, name))
        finally:
            await proc.fs.remove(proc.path(name))
        return True


def _text(side: output.Side, start: int, end: int) -> bytes:
    text = b"".join(line + b"\n" for line in side.lines[start:end])
    return text.removesuffix(b"\n") if not side.ended and end == len(side.lines) and start < end else text


def _headed(mark: str, side: output.Side, start: int, end: int, text: bytes) -> bytes:
    """A version below a line that says where it stands."""
    if start == end:
        return b""
    span = f"{start + 1}" if end - start == 1 else f"{start + 1},{end}"
    return encode(f"{mark} {side.name} {span}\n") + text


COMMANDS = [
    Command(
        "sdiff",
        sdiff,
        SdiffOptions,
        summary="Side-by-side merge of differences between files.",
        usage="[OPTION]... FILE1 FILE2",
        bad_usage=2,
        min_operands=2,
        max_operands=2,
        details="With -o, commands are read from standard input for each difference: l or r takes the left or the\n"
        "right version, e followed by l, r, b or d edits one or both before they are taken, q quits.",
    ),
]
