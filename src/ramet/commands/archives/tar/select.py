"""Select files and members: operands, -T lists, patterns and exclusions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.archives.tar.job import USUAL, Failed, Matching, TarJob
from ramet.commands.archives.tar.names import quoted, shown_name
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import UsageError
from ramet.commands.framework.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import Path, decode
from ramet.text.glob import fnmatch, has_wildcards

_VERSION_CONTROL = (
    ".git", ".gitignore", ".gitmodules", ".gitattributes", ".svn", ".hg", ".hgignore", ".hgtags", ".bzr", ".bzrignore",
    ".bzrtags", ".cvsignore", ".arch-ids", "CVS", "RCS", "SCCS", "_darcs", "{arch}", "=RELEASE-ID", "=meta-update",
    "=update",
)  # fmt: skip
_BACKUPS = (".#*", "*~", "#*#")


@dataclass(frozen=True, slots=True)
class Named:
    """A name, its base directory, and whether it includes everything below."""

    cwd: Path
    name: str
    recursive: bool = True
    how: Matching = USUAL


async def named_files(job: TarJob) -> list[Named]:
    """Return what was named, in the order of the command line: each option holds for the names behind it."""
    return await _Naming(job).all()


class _Naming:
    def __init__(self, job: TarJob) -> None:
        self.job = job
        self.how = USUAL
        self.cwd = job.cwd
        self.recursive, self.unquotes, self.null, self.verbatim = True, True, False, False
        self.out: list[Named] = []
        self.unused: list[str] = []
        """Options without a name behind them."""
        self.effective = len(job.excluded)
        """Number of exclude patterns before the last name."""

    async def all(self) -> list[Named]:
        for kind, given in self.job.o.order:
            await self.one(kind, given)
        job = self.job
        if self.unused and self.out and job.o.mode in ("c", "r", "u"):
            job.complain(
                "The following options were used after any non-optional arguments in archive create or update mode.  "
                "These options are positional and affect only arguments that follow them.  Please, rearrange them "
                "properly."
            )
            for text in self.unused:
                job.complain(f"{text} has no effect")
            del job.excluded[self.effective :]
        return self.out

    async def one(self, kind: str, given: object) -> None:
        job = self.job
        if kind == "directory":
            await self.enter(str(given))
            self.unused.append(f"-C {quoted(job, str(given))}")
        elif kind == "files_from":
            await self.listed(str(given))
        elif kind == "no_recursion":
            self.recursive = not given
            self.unused.append("--no-recursion" if given else "--recursion")
        elif kind == "unquote":
            self.unquotes = bool(given)
        elif kind == "null":
            self.null = self.verbatim = bool(given)
        elif kind == "verbatim":
            self.verbatim = bool(given)
        elif kind == "exclude":
            job.excluded.append((str(given), self.how))
            self.unused.append(f"--exclude {quoted(job, str(given))}")
        elif kind in ("anchored", "wildcards", "ignore_case", "match_slash"):
            self.how = self.how._replace(**{kind: bool(given)})
            word = {"match_slash": "wildcards-match-slash"}.get(kind, kind.replace("_", "-"))
            self.unused.append(f"--{'' if given else 'no-'}{word}")
        elif kind in ("", "add_file"):
            self.add(str(given))

    def add(self, name: str) -> None:
        self.unused.clear()
        self.effective = len(self.job.excluded)
        self.out.append(Named(self.cwd, _unquoted(name) if self.unquotes else name, self.recursive, self.how))

    async def enter(self, name: str) -> None:
        job = self.job
        self.cwd = job.proc.fs.named(name, self.cwd)
        stat = await lookup(job.proc, self.cwd, follow=True)
        if stat is None or not stat.is_dir:
            why = "No such file or directory" if stat is None else "Not a directory"
            raise Failed(f"{shown_name(job, name)}: Cannot open: {why}")

    async def listed(self, name: str) -> None:
        """Add the names of a file, which may contain options unless verbatim."""
        job = self.job
        try:
            data = await slurp(job.proc, name)
        except OSError as error:
            raise Failed(f"{shown_name(job, name)}: Cannot stat: {reason(error)}") from None
        separator = b"\0" if self.null else b"\n"
        if not self.null and b"\0" in data:
            job.proc.complain(f"{shown_name(job, name)}: file name read contains nul character")
            separator = b"\0"
        for line in data.split(separator):
            if not line:
                continue
            text = decode(line)
            if self.verbatim or not text.startswith("-"):
                self.add(text)
            else:
                await self.option(text)

    async def option(self, line: str) -> None:
        found = re.fullmatch(r"-(?:C *|-directory[= ])(.+)", line)
        if found:
            await self.enter(found[1])
        elif found := re.fullmatch(r"-(?:T *|-files-from[= ])(.+)", line):
            await self.listed(found[1])
        elif found := re.fullmatch(r"--exclude[= ](.+)", line):
            self.job.excluded.append((found[1], self.how))
        elif found := re.fullmatch(r"--add-file[= ](.+)", line):
            self.add(found[1])
        elif found := re.fullmatch(r"--(no-)?(recursion|unquote)", line):
            if found[2] == "recursion":
                self.recursive = not found[1]
            else:
                self.unquotes = not found[1]
        else:
            raise UsageError(f"unrecognized option '{line}'")


_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|([abfnrtv?\\]))")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "?": "\x7f", "\\": "\\"}


def _unquoted(name: str) -> str:
    if "\\" not in name:
        return name

    def meant(found: re.Match[str]) -> str:
        return decode(bytes([int(found[1], 8) & 0xFF])) if found[1] else _ESCAPED[found[2]]

    return _ESCAPE.sub(meant, name)


async def read_exclusions(job: TarJob) -> None:
    """Read the patterns of -X, --exclude-vcs and --exclude-backups."""
    o = job.o
    how = USUAL
    for kind, given in o.order:
        if kind in Matching._fields:
            how = how._replace(**{kind: bool(given)})
        if kind != "exclude_from":
            continue
        word = str(given)
        try:
            data = await slurp(job.proc, word)
        except OSError as error:
            raise Failed(f"{shown_name(job, word)}: {reason(error)}") from None
        job.excluded += [(decode(line), how) for line in data.split(b"\n") if line]
    if o.exclude_vcs:
        job.excluded += [(pattern, USUAL) for pattern in _VERSION_CONTROL]
    if o.exclude_backups:
        job.excluded += [(pattern, USUAL) for pattern in _BACKUPS]


def is_excluded(job: TarJob, name: str) -> bool:
    """Return whether a pattern matches the name, a trailing part of it, or a directory above it."""
    return any(
        _matches(name, pattern, how, wildcards=how.wildcards is not False, anchored=how.anchored is True)
        for pattern, how in job.excluded
    )


def wanted_match(job: TarJob, name: str, wanted: list[Named]) -> Named | None:
    """Return which of the named members this one is, or lies below."""
    for want in wanted:
        if _matches(
            name,
            want.name.rstrip("/"),
            want.how,
            wildcards=want.how.wildcards is True,
            anchored=want.how.anchored is not False,
            below=want.recursive,
        ):
            return want
    return None


def _matches(name: str, pattern: str, how: Matching, *, wildcards: bool, anchored: bool, below: bool = True) -> bool:
    pieces = name.rstrip("/").split("/")
    icase, pathname = how.ignore_case, how.match_slash is False
    if not wildcards and icase:
        pattern = pattern.lower()
        pieces = [piece.lower() for piece in pieces]
    for start in range(1 if anchored else len(pieces)):
        for end in range(start + 1 if below else len(pieces), len(pieces) + 1):
            text = "/".join(pieces[start:end])
            if fnmatch(text, pattern, icase=icase, pathname=pathname) if wildcards else text == pattern:
                return True
    return False


def complain_missing(job: TarJob, wanted: list[Named], seen: set[str]) -> None:
    """Report names without a member; warn of unused wildcards."""
    warned = job.o.wildcards is not None
    for want in wanted:
        if want.name not in seen:
            if not warned and has_wildcards(want.name):
                job.proc.complain("Pattern matching characters used in file names")
                job.proc.complain(
                    "Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning"
                )
                warned = True
            what = "Not found" if job.o.occurrence is None else "Required occurrence not found"
            job.complain(f"{shown_name(job, want.name)}: {what} in archive")
