"""tar: create, extract, list, append, update, compare, from and to streams; extraction never leaves its directory."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from ramet.commands import compress
from ramet.commands.clock import NANO, at, strftime, zone_of
from ramet.commands.copy import lookup
from ramet.commands.dates import BadDate, parse_date
from ramet.commands.declare import Command, UsageError, choose, flag, mixed, ordered, quote, several, shown, value
from ramet.commands.globs import fnmatch
from ramet.commands.inputs import slurp
from ramet.commands.modes import BadMode, change_mode, mode_of, mode_string
from ramet.commands.tar_format import DIRECTORY, HARDLINK, SYMLINK, BadArchive, Member, Members, Output
from ramet.core import ops, paths
from ramet.core.errors import Unsupported, reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import IteratorReader, Reader, Writer, pipe


@dataclass(frozen=True, slots=True)
class TarOptions:
    mode: str = choose(
        {
            "-c --create": "c",
            "-x --extract --get": "x",
            "-t --list": "t",
            "-r --append": "r",
            "-u --update": "u",
            "-d --diff --compare": "d",
            "--delete": "delete",
        },
        default="",
        help={
            "-c --create": "create a new archive",
            "-x --extract --get": "extract files from an archive",
            "-t --list": "list the contents of an archive",
            "-r --append": "append files to the end of an archive",
            "-u --update": "only append files newer than copy in archive",
            "-d --diff --compare": "find differences between archive and file system",
            "--delete": "delete from the archive",
        },
    )
    file: str | None = value(
        "-f", "--file", metavar="ARCHIVE", help="use archive file ARCHIVE; - is standard input or output"
    )
    packing: str = choose(
        {
            "-z --gzip --gunzip --ungzip": "gzip",
            "-j --bzip2": "bzip2",
            "-J --xz": "xz",
            "--lzma": "lzma",
            "--zstd": "zstd",
            "-a --auto-compress": "auto",
            "--no-auto-compress": "",
        },
        default="",
        help="filter the archive through that compression",
    )
    order: tuple[tuple[str, object], ...] = ordered()
    directory: tuple[str, ...] = several("-C", "--directory", metavar="DIR", help="change to directory DIR")
    files_from: tuple[str, ...] = several(
        "-T", "--files-from", metavar="FILE", help="get names to extract or create from FILE"
    )
    null: bool = choose({"--null": True, "--no-null": False}, default=False, help="-T reads null-terminated names")
    exclude: tuple[str, ...] = several("--exclude", metavar="PATTERN", help="exclude files, given as a PATTERN")
    exclude_from: tuple[str, ...] = several(
        "-X", "--exclude-from", metavar="FILE", help="exclude patterns listed in FILE"
    )
    exclude_vcs: bool = flag("--exclude-vcs", help="exclude version control system directories")
    strip: str = value(
        "--strip-components",
        "--strip",
        metavar="NUMBER",
        default="0",
        help="strip NUMBER leading components from file names on extraction",
    )
    transform: tuple[str, ...] = several(
        "--transform", "--xform", metavar="EXPRESSION", help="use sed replace EXPRESSION to transform file names"
    )
    to_stdout: bool = flag("-O", "--to-stdout", help="extract files to standard output")
    overwrite: str = choose(
        {
            "-k --keep-old-files": "keep",
            "--skip-old-files": "skip",
            "--keep-newer-files": "newer",
            "--overwrite": "over",
            "-U --unlink-first": "unlink",
        },
        default="",
        help={
            "-k --keep-old-files": "don't replace existing files when extracting, treat them as errors",
            "--skip-old-files": "don't replace existing files when extracting, silently skip over them",
            "--keep-newer-files": "don't replace existing files that are newer than their archive copies",
            "--overwrite": "overwrite existing files when extracting",
            "-U --unlink-first": "remove each file prior to extracting over it",
        },
    )
    preserve: bool = flag(
        "-p", "--preserve-permissions", "--same-permissions", help="extract information about file permissions"
    )
    touch: bool = flag("-m", "--touch", help="don't extract file modified time")
    verbose: int = mixed(*[flag("-v", "--verbose", const=1, help="verbosely list files processed")], default=0)
    dereference: bool = flag("-h", "--dereference", help="follow symlinks; archive the files they point to")
    absolute: bool = flag("-P", "--absolute-names", help="don't strip leading '/'s from file names")
    no_recursion: bool = choose(
        {"--no-recursion": True, "--recursion": False},
        default=False,
        help="avoid descending automatically in directories",
    )
    owner: str | None = value("--owner", metavar="NAME", help="force NAME as owner for added files")
    group: str | None = value("--group", metavar="NAME", help="force NAME as group for added files")
    numeric: bool = flag("--numeric-owner", help="always use numbers for user/group names")
    mode_text: str | None = value("--mode", metavar="CHANGES", help="force (symbolic) mode CHANGES for added files")
    mtime: str | None = value("--mtime", metavar="DATE-OR-FILE", help="set mtime for added files")
    sort: str = value(
        "--sort", metavar="ORDER", default="name", choices=("none", "name", "inode"), help="directory sorting order"
    )
    format: str = value(
        "-H",
        "--format",
        metavar="FORMAT",
        default="gnu",
        choices=("gnu", "oldgnu", "pax", "posix", "ustar", "v7"),
        help="create archive of the given format",
    )
    newer: str | None = value(
        "-N", "--newer", "--after-date", "--newer-mtime", metavar="DATE", help="only store files newer than DATE"
    )
    wildcards: bool = choose({"--wildcards": True, "--no-wildcards": False}, default=None, help="use wildcards, or not")
    anchored: bool = choose(
        {"--anchored": True, "--no-anchored": False},
        default=None,
        help="patterns match file name start, or after any '/'",
    )
    ignore_case: bool = choose({"--ignore-case": True, "--no-ignore-case": False}, default=False, help="ignore case")
    remove: bool = flag("--remove-files", help="remove files after adding them to the archive")
    one_system: bool = flag("--one-file-system", help="stay in local file system when creating archive")
    verify: bool = flag("-W", "--verify", help="attempt to verify the archive after writing it")
    show_names: bool = flag(
        "--show-transformed-names", "--show-stored-names", help="show file or archive names after transformation"
    )
    utc: bool = flag("--utc", help="print file modification times in UTC")
    full_time: bool = flag("--full-time", help="print file time to its full resolution")
    totals: bool = flag("--totals", help="print total bytes after processing the archive")
    occurrence: str | None = value(
        "--occurrence", metavar="NUMBER", help="process only the NUMBERth occurrence of each file"
    )
    starting: str | None = value(
        "-K", "--starting-file", metavar="MEMBER", help="begin at member MEMBER in the archive"
    )
    ignore_failed: bool = flag("--ignore-failed-read", help="do not exit with nonzero on unreadable files")
    one_top: bool = flag("--one-top-level", help="create a subdirectory to avoid having loose files extracted")


_WITH_ARGUMENT = "fCTXHKNbgVLF"


def _old_tar(words: list[str]) -> list[str]:
    """`tar xzf a.tar`: the first word holds letters, their arguments follow in order; -vv counts twice."""
    if not words or words[0].startswith("-") or not re.fullmatch(r"[A-Za-z0-9]+", words[0]):
        return words
    out: list[str] = []
    rest = list(words[1:])
    for letter in words[0]:
        out.append(f"-{letter}")
        if letter in _WITH_ARGUMENT and rest:
            out.append(rest.pop(0))
    return out + rest


class _Failed(Exception):
    """Nothing more can be done; the message was or is to be said."""


@dataclass
class _Tar:
    proc: Proc
    o: TarOptions
    cwd: Path
    verbose: int
    status: int = 0
    excluded: list[str] = field(default_factory=list)
    rename: Callable[[str, str], str] | None = None
    stripped_warned: set[str] = field(default_factory=set)
    listing_to: Writer | None = None

    def complain(self, message: str, status: int = 2) -> None:
        self.proc.complain(message)
        self.status = max(self.status, status)

    def path(self, word: str) -> Path:
        return paths.parse(word, self.cwd)

    def say(self, text: str) -> None:
        (self.proc.stdout if self.listing_to is None else self.listing_to).write(encode(text + "\n"))


async def tar(proc: Proc, o: TarOptions, operands: list[str]) -> int:
    if not o.mode:
        proc.complain("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
        proc.stderr.write(b"Try 'tar --help' or 'tar --usage' for more information.\n")
        return 2
    verbose = sum(1 for name, _ in o.order if name == "verbose")
    job = _Tar(proc, o, proc.cwd, verbose)
    job.excluded = list(o.exclude)
    for word in o.exclude_from:
        job.excluded += [decode(line) for line in (await slurp(proc, word)).split(b"\n") if line]
    if o.exclude_vcs:
        job.excluded += [
            ".git",
            ".gitignore",
            ".gitmodules",
            ".gitattributes",
            ".svn",
            ".hg",
            ".hgignore",
            ".bzr",
            "CVS",
            "RCS",
            "SCCS",
            "_darcs",
        ]
    if o.transform:
        job.rename = _transformer(o.transform)
    try:
        if o.mode == "c":
            await _create(job, operands)
        elif o.mode in ("r", "u"):
            await _append(job, operands)
        elif o.mode == "delete":
            await _delete(job, operands)
        else:
            await _read(job, operands)
    except _Failed as failed:
        if failed.args:
            proc.complain(str(failed))
            proc.complain("Error is not recoverable: exiting now")
        return 2
    if job.status == 2:
        proc.complain("Exiting with failure status due to previous errors")
    return job.status


# -------------------------------------------------------------------------------------------------------- names


def _transformer(texts: tuple[str, ...]) -> Callable[[str, str], str]:
    """`s/PATTERN/REPLACEMENT/FLAGS` on names; the flags r, s, h say what kind of name it is for."""
    from ramet.commands.regexes import bre_bytes, ere_bytes

    rules = []
    for text in texts:
        for piece in re.split(r";(?=s)", text):
            mark = piece[1:2]
            parts = re.split(rf"(?<!\\){re.escape(mark)}", piece[2:]) if piece.startswith("s") and mark else []
            if len(parts) != 3:
                raise UsageError(f"Invalid transform expression: {quote(text)}", hint=False, status=2)
            pattern, replacement, flags = parts
            pattern = pattern.replace("\\" + mark, mark)
            matcher = (ere_bytes if "x" in flags else bre_bytes)(pattern, icase="i" in flags)
            rules.append((matcher, replacement.replace("\\" + mark, mark), flags))

    def apply(name: str, kind: str) -> str:
        for matcher, replacement, flags in rules:
            if kind.upper() in flags:
                continue
            raw = encode(name)
            out: list[bytes] = []
            pos = 0
            while (spans := matcher.spans(raw, pos)) is not None:
                start, end = spans[0]
                out.append(raw[pos:start])
                out.append(encode(_expand(replacement, raw, spans)))
                if end == start:
                    out.append(raw[end : end + 1])
                    pos = end + 1
                else:
                    pos = end
                if "g" not in flags or pos > len(raw):
                    break
            out.append(raw[pos:])
            name = decode(b"".join(out))
        return name

    return apply


def _expand(replacement: str, raw: bytes, spans: list[tuple[int, int]]) -> str:
    def group(number: int) -> str:
        if number >= len(spans) or spans[number][0] < 0:
            return ""
        return decode(raw[spans[number][0] : spans[number][1]])

    return re.sub(r"\\(\d)|\\(.)|(&)", lambda m: group(int(m[1])) if m[1] else m[2] if m[2] else group(0), replacement)


def _excluded(job: _Tar, name: str) -> bool:
    """Patterns match a whole name or any trailing part behind a slash, and then everything below it."""
    if not job.excluded:
        return False
    name = name.rstrip("/")
    icase = job.o.ignore_case
    pieces = name.split("/")
    tails = [name] if job.o.anchored else ["/".join(pieces[i:]) for i in range(len(pieces))]
    return any(fnmatch(tail, pattern.rstrip("/"), icase=icase) for pattern in job.excluded for tail in tails)


def _stored(job: _Tar, name: str, kind: str = "r") -> str:
    """The name as it goes into the archive: no leading slash, no `..`."""
    if job.rename is not None:
        name = job.rename(name, kind)
    if job.o.absolute:
        return name
    what = "hard link targets" if kind == "h" else "member names"
    found = re.match(r"(?:.*/)?\.\.(?:/|\Z)", name)
    if found and name not in ("..",):
        if found[0] not in job.stripped_warned:
            job.stripped_warned.add(found[0])
            job.proc.complain(f"Removing leading `{found[0]}' from {what}")
        name = name[found.end() :]
    elif name.startswith("/"):
        lead = name[: len(name) - len(name.lstrip("/"))]
        if lead not in job.stripped_warned:
            job.stripped_warned.add(lead)
            job.proc.complain(f"Removing leading `{lead}' from {what}")
        name = name.lstrip("/")
    return name or "./"


async def _names(job: _Tar, operands: list[str]) -> list[tuple[Path, str]]:
    """What to archive: each name with the directory it is relative to."""
    out: list[tuple[Path, str]] = []
    cwd = job.cwd
    for kind, given in job.o.order or [("", w) for w in operands]:
        if kind == "directory":
            cwd = paths.parse(str(given), cwd)
            stat = await lookup(job.proc, cwd, follow=True)
            if stat is None or not stat.is_dir:
                why = "No such file or directory" if stat is None else "Not a directory"
                raise _Failed(f"{shown(str(given))}: Cannot open: {why}")
        elif kind == "files_from":
            separator = b"\0" if job.o.null else b"\n"
            try:
                data = await slurp(job.proc, str(given))
            except OSError as error:
                raise _Failed(f"{shown(str(given))}: Cannot open: {reason(error)}") from None
            out += [(cwd, decode(line)) for line in data.split(separator) if line]
        elif kind == "":
            out.append((cwd, str(given)))
    return out


# ----------------------------------------------------------------------------------------------------- creating


def _packing(job: _Tar) -> compress.Format | None:
    kind = job.o.packing
    if kind == "auto":
        name = job.o.file or ""
        table = {
            (".gz", ".tgz", ".taz"): "gzip",
            (".bz2", ".tbz", ".tbz2", ".tz2"): "bzip2",
            (".xz", ".txz"): "xz",
            (".lzma", ".tlz"): "lzma",
            (".zst", ".tzst"): "zstd",
        }
        kind = next((k for ends, k in table.items() if name.endswith(ends)), "")
    return compress.FORMATS[kind] if kind else None


async def _create(job: _Tar, operands: list[str]) -> None:
    proc, o = job.proc, job.o
    names = await _names(job, operands)
    if not names and not o.files_from:
        raise _empty(job)
    to_stdout = o.file in (None, "-")
    if to_stdout:
        job.listing_to = proc.stderr
    packing = _packing(job)
    reader, writer = pipe(1 << 20)

    async def emit(data: bytes) -> None:
        writer.write(data)
        if writer.full:
            await writer.drain()

    async def produce() -> None:
        try:
            await _fill(job, names, Output(emit, pax=o.format in ("pax", "posix")))
        finally:
            writer.close_now()

    async def blocks() -> AsyncIterator[bytes]:
        while block := await reader.read(1 << 18):
            yield block
            await proc.budget.breathe()

    source = blocks() if packing is None else compress.compressed(blocks(), packing, packing.default)
    task = asyncio.create_task(produce())
    try:
        if to_stdout:
            async for block in source:
                await proc.emit(block)
        else:
            try:
                await proc.fs.write(proc.path(o.file or ""), source)
            except OSError as error:
                raise _Failed(f"{shown(o.file or '')}: Cannot open: {reason(error)}") from None
        await task
    finally:
        if not task.done():
            task.cancel()
            reader.close_now()


def _empty(job: _Tar) -> _Failed:
    job.proc.complain("Cowardly refusing to create an empty archive")
    job.proc.stderr.write(b"Try 'tar --help' or 'tar --usage' for more information.\n")
    return _Failed()


async def _fill(job: _Tar, names: list[tuple[Path, str]], out: Output) -> None:
    seen: dict[tuple[Path, int], str] = {}
    archive = job.proc.path(job.o.file) if job.o.file not in (None, "-") else None
    limit = _moment(job, job.o.newer) if job.o.newer else None
    for cwd, name in names:
        path = paths.parse(name, cwd)
        try:
            stat = await job.proc.fs.stat(path, follow=job.o.dereference)
        except OSError as error:
            job.complain(f"{shown(name)}: Cannot stat: {reason(error)}", 0 if job.o.ignore_failed else 2)
            continue
        await _add(job, out, name, path, stat, seen, archive, limit, top=True)
    await out.finish()
    if job.o.totals:
        job.proc.stderr.write(f"Total bytes written: {out.size} ({out.size // 1024}KiB, 0B/s)\n".encode())


def _moment(job: _Tar, text: str) -> int:
    try:
        return parse_date(text, int(job.proc.now() * NANO), zone_of(job.proc))
    except BadDate:
        raise _Failed(f"Invalid date format {quote(text)}") from None


async def _add(
    job: _Tar,
    out: Output,
    name: str,
    path: Path,
    stat: Stat,
    seen: dict[tuple[Path, int], str],
    archive: Path | None,
    limit: int | None,
    *,
    top: bool = False,
) -> None:
    proc, o = job.proc, job.o
    if _excluded(job, name):
        return
    if archive is not None and path == archive:
        job.proc.complain(f"{shown(name)}: file is the archive; not dumped")
        return
    if limit is not None and not stat.is_dir and (stat.mtime_ns or 0) < limit:
        if top:
            job.proc.complain(f"{shown(name)}: file is unchanged; not dumped")
        return
    member = await _describe(job, name, stat)
    if stat.kind is Kind.FILE and stat.inode is not None and (stat.nlink or 1) > 1:
        key = (proc.fs.mount_of(path), stat.inode)
        if key in seen:
            member.kind, member.link, member.size = HARDLINK, seen[key], 0
        else:
            seen[key] = member.name
    if job.verbose:
        job.say(
            _line(job, member)
            if job.verbose > 1
            else _shown(job, member.name if o.show_names else (name.rstrip("/") + "/" if stat.is_dir else name))
        )
    try:
        await out.member(member, proc.fs.read(path) if member.is_file else None)
    except OSError as error:
        job.complain(f"{shown(name)}: Cannot open: {reason(error)}")
        return
    if stat.is_dir and not o.no_recursion:
        entries = [entry async for entry in proc.fs.scan(path)]
        if o.sort != "none":
            entries.sort()
        here = proc.fs.mount_of(path)
        for child, below in entries:
            if o.dereference and below.kind is Kind.LINK:
                try:
                    below = await proc.fs.stat(path / child, follow=True)
                except OSError as error:
                    job.complain(f"{shown(name)}/{child}: Cannot stat: {reason(error)}")
                    continue
            if o.one_system and proc.fs.mount_of(path / child) != here:
                continue
            await _add(
                job,
                out,
                f"{name.rstrip('/')}/{child}" if name.rstrip("/") else f"/{child}",
                path / child,
                below,
                seen,
                archive,
                limit,
            )
    if o.remove:
        try:
            await proc.fs.remove(path)
        except OSError as error:
            job.complain(f"{shown(name)}: Cannot unlink: {reason(error)}")


def _shown(job: _Tar, name: str) -> str:
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


async def _describe(job: _Tar, name: str, stat: Stat) -> Member:
    o, user = job.o, job.proc.user
    stored = _stored(job, name)
    kind = DIRECTORY if stat.is_dir else SYMLINK if stat.kind is Kind.LINK else b"0"
    mode = mode_of(stat)
    if o.mode_text is not None:
        try:
            mode = change_mode(o.mode_text, mode, stat.is_dir, 0)
        except BadMode:
            raise _Failed("Invalid mode given on option") from None
    mtime = (stat.mtime_ns or 0) / NANO
    if o.mtime is not None:
        reference = await lookup(job.proc, job.path(o.mtime), follow=True) if re.match(r"[./]", o.mtime) else None
        mtime = ((reference.mtime_ns or 0) if reference is not None else _moment(job, o.mtime)) / NANO
    owner, uid = _who(o.owner, user.name, user.uid)
    group, gid = _who(o.group, user.group, user.gid)
    if stat.is_dir and not stored.endswith("/"):
        stored += "/"
    link = stat.target or "" if kind == SYMLINK else ""
    if link and job.rename is not None:
        link = job.rename(link, "s")
    return Member(
        stored,
        kind,
        mode,
        (stat.size or 0) if kind == b"0" else 0,
        mtime,
        link,
        uid,
        gid,
        "" if o.numeric else owner,
        "" if o.numeric else group,
    )


def _who(text: str | None, name: str, number: int) -> tuple[str, int]:
    if text is None:
        return name, number
    label, colon, digits = text.partition(":")
    if colon and digits.lstrip("+").isdigit():
        return label, int(digits)
    if text.lstrip("+").isdigit():
        return ("root" if int(text) == 0 else ""), int(text)
    return text, 0 if text == "root" else number


# ------------------------------------------------------------------------------------------------------ reading


async def _opened(job: _Tar) -> tuple[Reader, Members]:
    proc, o = job.proc, job.o
    try:
        raw = proc.stdin if o.file in (None, "-") else await proc.open(o.file or "")
    except OSError as error:
        raise _Failed(f"{shown(o.file or '')}: Cannot open: {reason(error)}") from None
    first = await raw.read(1 << 18)
    found = compress.sniff(first)
    if o.packing and o.packing != "auto" and found is not compress.FORMATS[o.packing] and first:
        job.proc.stderr.write(b"\ngzip: stdin: not in gzip format\n" if o.packing == "gzip" else b"")
        job.proc.complain("Child returned status 1")
        raise _unrecoverable(job)
    if found is None:
        raw.unread(first)
        return raw, Members(raw)
    return raw, Members(IteratorReader(compress.decompressed(raw, found, first)))


def _unrecoverable(job: _Tar) -> _Failed:
    job.proc.complain("Error is not recoverable: exiting now")
    return _Failed()


async def _read(job: _Tar, operands: list[str]) -> None:
    proc, o = job.proc, job.o
    wanted = [name.rstrip("/") for _, name in await _names(job, operands)]
    for word in o.directory:
        job.cwd = paths.parse(word, job.cwd)
    if o.directory and not await ops.exists(proc.fs, job.cwd):
        raise _Failed(f"{shown(o.directory[-1])}: Cannot open: No such file or directory")
    if not o.strip.isdigit():
        raise _Failed(f"Invalid number of elements: {quote(o.strip)}")
    if o.to_stdout:
        job.listing_to = proc.stderr
    raw, members = await _opened(job)
    seen: set[str] = set()
    later: list[tuple[Path, Member]] = []
    try:
        while (member := await members.next()) is not None:
            await proc.budget.breathe()
            match = _match(job, member.name, wanted)
            if wanted and match is None:
                continue
            if match is not None:
                seen.add(match)
            if _excluded(job, member.name):
                continue
            if o.mode == "t":
                job.say(
                    _line(job, member)
                    if job.verbose
                    else _shown(
                        job, member.name if job.rename is None or not o.show_names else job.rename(member.name, "r")
                    )
                )
                if proc.stdout.full:
                    await proc.stdout.drain()
            elif o.mode == "d":
                await _compare(job, member, members)
            else:
                await _extract(job, member, members, later)
    except BadArchive as bad:
        _bad_archive(job, str(bad))
    except compress.Corrupt as corrupt:
        proc.stderr.write(encode(f"\ngzip: stdin: {corrupt}\n"))
        job.proc.complain("Child returned status 1")
        raise _unrecoverable(job) from None
    # Directories get their modes and times last: what is extracted into them would change them.
    for path, member in reversed(later):
        await _attributes(job, path, member)
    for name in wanted:
        if name not in seen:
            job.complain(f"{shown(name)}: Not found in archive")
    await proc.close(raw)


def _bad_archive(job: _Tar, text: str) -> None:
    if text in ("empty", "short"):
        job.proc.complain("This does not look like a tar archive")
        raise _exit(job)
    job.proc.complain(text)
    if text.startswith("This does not"):
        job.proc.complain("Skipping to next header")
        job.status = 2
        return
    raise _unrecoverable(job)


def _exit(job: _Tar) -> _Failed:
    job.proc.complain("Exiting with failure status due to previous errors")
    return _Failed()


def _match(job: _Tar, name: str, wanted: list[str]) -> str | None:
    """Which of the named members this one is, or lies below."""
    plain = name.rstrip("/")
    for want in wanted:
        if plain == want or plain.startswith(want + "/"):
            return want
        if job.o.wildcards and (
            fnmatch(plain, want)
            or any(fnmatch("/".join(plain.split("/")[:i]), want) for i in range(1, plain.count("/") + 1))
        ):
            return want
    return None


def _line(job: _Tar, member: Member) -> str:
    kinds = {DIRECTORY: Kind.DIR, SYMLINK: Kind.LINK}
    mode = mode_string(kinds.get(member.kind, Kind.FILE), member.mode)
    if member.kind == HARDLINK:
        mode = "h" + mode[1:]
    owner = str(member.uid) if job.o.numeric else member.owner or str(member.uid)
    group = str(member.gid) if job.o.numeric else member.group or str(member.gid)
    when, nanos = at(int(member.mtime * NANO), zone_of(job.proc))
    stamp = strftime("%Y-%m-%d %H:%M:%S.%N" if job.o.full_time else "%Y-%m-%d %H:%M", when, nanos)
    name = _shown(job, member.name)
    tail = (
        f" -> {member.link}" if member.kind == SYMLINK else f" link to {member.link}" if member.kind == HARDLINK else ""
    )
    who = f"{owner}/{group}"
    return f"{mode} {who} {str(member.size).rjust(max(0, 18 - len(who)))} {stamp} {name}{tail}"


# --------------------------------------------------------------------------------------------------- extracting


def _safe(job: _Tar, name: str, kind: str) -> str | None:
    """The name to extract to: stripped, transformed, and never out of the directory; None when nothing is left."""
    strip = int(job.o.strip)
    if job.rename is not None:
        name = job.rename(name, "r")
    if strip:
        parts = [p for p in name.split("/") if p]
        if len(parts) <= strip:
            return None
        name = "/".join(parts[strip:])
    if job.o.absolute:
        return name
    if ".." in name.split("/"):
        job.complain(f"{shown(name)}: Member name contains '..'")
        return None
    if name.startswith("/"):
        if "/" not in job.stripped_warned:
            job.stripped_warned.add("/")
            job.proc.complain(f"Removing leading `/' from {'hard link targets' if kind == 'h' else 'member names'}")
        name = name.lstrip("/")
    return name or "."


async def _within(job: _Tar, path: Path) -> bool:
    """Whether the parents of a path lead, through all links, to a place inside the directory of extraction."""
    if job.o.absolute:
        return True
    top = await job.proc.fs.resolve(job.cwd)
    parent = path.parent
    while parent != job.cwd and parent.under(job.cwd):
        stat = await lookup(job.proc, parent)
        if stat is not None:
            try:
                return (await job.proc.fs.resolve(parent)).under(top)
            except OSError:
                return False
        parent = parent.parent
    return True


async def _extract(job: _Tar, member: Member, members: Members, later: list[tuple[Path, Member]]) -> None:
    proc, o = job.proc, job.o
    name = _safe(job, member.name, "r")
    if name is None:
        return
    if job.verbose:
        job.say(
            _line(job, member)
            if job.verbose > 1
            else _shown(job, name + "/" if member.is_dir and not name.endswith("/") and o.show_names else member.name)
        )
        if proc.stdout.full and not o.to_stdout:
            await proc.stdout.drain()
    if o.to_stdout:
        if member.is_file:
            async for block in members.content():
                await proc.emit(block)
        return
    path = job.path(name)
    if not await _within(job, path):
        job.complain(f"{shown(name)}: Cannot open: a link in the path leads out of the directory")
        return
    try:
        await _place(job, member, members, name, path, later)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        job.complain(f"{shown(name)}: Cannot {'mkdir' if member.is_dir else 'open'}: {reason(error)}")


async def _place(
    job: _Tar, member: Member, members: Members, name: str, path: Path, later: list[tuple[Path, Member]]
) -> None:
    proc, o = job.proc, job.o
    existing = await lookup(proc, path)
    if member.is_dir:
        if existing is None:
            await ops.make_dirs(proc.fs, path)
        elif not existing.is_dir:
            followed = await lookup(proc, path, follow=True)
            if followed is None or not followed.is_dir:
                await proc.fs.remove(path)
                await proc.fs.mkdir(path)
        later.append((path, member))
        return
    if existing is not None:
        if o.overwrite == "keep":
            job.complain(f"{shown(name)}: Cannot open: File exists")
            return
        if o.overwrite == "skip":
            return
        if o.overwrite == "newer" and (existing.mtime_ns or 0) >= member.mtime * NANO:
            job.proc.complain(f"Current {quote(name)} is newer or same age")
            return
        if existing.is_dir:
            raise OSError(errno.EISDIR, "", name)
        await proc.fs.remove(path)
    else:
        await ops.make_dirs(proc.fs, path.parent)
    if member.kind == SYMLINK:
        await proc.fs.write(path, encode(member.link), How.LINK)
        return
    if member.kind == HARDLINK:
        target = _safe(job, member.link, "h")
        if target is None:
            return
        source = job.path(target)
        if not await _within(job, source) or ((await proc.fs.stat(source)).kind is Kind.LINK and not o.absolute):
            job.complain(f"{shown(name)}: Cannot hard link to {quote(target)}: it is not inside the directory")
            return
        try:
            await proc.fs.link(source, path)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOTSUP):
                raise
            await proc.fs.write(path, proc.fs.read(source))
        return
    if not member.is_file:
        job.complain(f"{shown(name)}: Cannot mknod: device files are not supported here")
        return
    await proc.fs.write(path, members.content())
    await _attributes(job, path, member)


async def _attributes(job: _Tar, path: Path, member: Member) -> None:
    mode = member.mode if job.o.preserve else member.mode & ~job.proc.umask
    try:
        await job.proc.fs.setattr(
            path, Attrs(mode=mode & 0o7777, mtime_ns=None if job.o.touch else int(member.mtime * NANO))
        )
    except Unsupported:
        return


async def _compare(job: _Tar, member: Member, members: Members) -> None:
    name = _safe(job, member.name, "r")
    if name is None:
        return
    if job.verbose:
        job.say(member.name)
    stat = await lookup(job.proc, job.path(name))
    differences: list[str] = []
    if stat is None:
        job.proc.complain(f"{shown(name)}: Warning: Cannot stat: No such file or directory")
        job.status = max(job.status, 1)
        return
    if member.is_dir != stat.is_dir:
        differences.append("File type differs")
    else:
        if mode_of(stat) != member.mode and stat.kind is not Kind.LINK:
            differences.append("Mode differs")
        if member.is_file:
            if int((stat.mtime_ns or 0) // NANO) != int(member.mtime):
                differences.append("Mod time differs")
            if stat.size != member.size:
                differences.append("Size differs")
            else:
                content = b"".join([block async for block in members.content()])
                if content != await ops.read_bytes(job.proc.fs, job.path(name)):
                    differences.append("Contents differ")
        elif member.kind == SYMLINK and stat.target != member.link:
            differences.append("Symlink differs")
    for text in differences:
        await job.proc.emit(encode(f"{member.name.rstrip('/') if member.is_dir else member.name}: {text}\n"))
        job.status = max(job.status, 1)


# ---------------------------------------------------------------------------------------------------- appending


async def _append(job: _Tar, operands: list[str]) -> None:
    proc, o = job.proc, job.o
    if o.file in (None, "-"):
        raise _Failed("Refusing to append to standard output")
    if _packing(job) is not None:
        raise _Failed("Cannot update compressed archives")
    names = await _names(job, operands)
    path = proc.path(o.file or "")
    end = 0
    newest: dict[str, float] = {}
    existing = await lookup(proc, path, follow=True)
    if existing is not None and existing.size:
        reader = await proc.open(o.file or "")
        first = await reader.read(8)
        if compress.sniff(first) is not None:
            raise _Failed("Cannot update compressed archives")
        reader.unread(first)
        members = Members(reader)
        try:
            while (member := await members.next()) is not None:
                newest[member.name.rstrip("/")] = member.mtime
                await members.skip()
                end = members.at
        except BadArchive as bad:
            raise _Failed(str(bad)) from None
        await proc.close(reader)
    from ramet.core.streams import Capture

    kept = names
    if o.mode == "u":
        kept = []
        for cwd, name in names:
            stat = await lookup(proc, paths.parse(name, cwd))
            if (
                stat is None
                or stat.is_dir
                or int((stat.mtime_ns or 0) // NANO) > int(newest.get(_stored(job, name).rstrip("/"), -1))
            ):
                kept.append((cwd, name))
    captured = Capture()

    async def emit(data: bytes) -> None:
        captured.write(data)

    await _fill(job, kept, Output(emit, pax=o.format in ("pax", "posix"), at=end))
    if end == 0:
        await proc.fs.write(path, captured.getvalue())
        return
    await proc.fs.setattr(await proc.fs.resolve(path), Attrs(size=end))
    await proc.fs.write(path, captured.getvalue(), How.APPEND)


async def _delete(job: _Tar, operands: list[str]) -> None:
    proc, o = job.proc, job.o
    wanted = [name.rstrip("/") for _, name in await _names(job, operands)]
    raw, members = await _opened(job)
    from ramet.core.streams import Capture

    captured = Capture()

    async def emit(data: bytes) -> None:
        captured.write(data)

    out = Output(emit, pax=o.format in ("pax", "posix"))
    seen: set[str] = set()
    try:
        while (member := await members.next()) is not None:
            match = _match(job, member.name, wanted)
            if match is not None:
                seen.add(match)
                continue
            await out.member(member, members.content())
    except BadArchive as bad:
        _bad_archive(job, str(bad))
        return
    await out.finish()
    await proc.close(raw)
    await proc.fs.write(proc.path(o.file or ""), captured.getvalue())
    for name in wanted:
        if name not in seen:
            job.complain(f"{shown(name)}: Not found in archive")


COMMANDS = [
    Command(
        "tar",
        tar,
        TarOptions,
        summary="Save many files together into a single archive, and restore individual files from it.",
        usage="[OPTION...] [FILE]...",
        bad_usage=64,
        rewrite=_old_tar,
        ignored=(
            "-b= --blocking-factor=",
            "-i --ignore-zeros",
            "-B --read-full-records",
            "-S --sparse",
            "--no-same-owner -o",
            "--same-owner",
            "--no-same-permissions",
            "-s --preserve-order --same-order",
            "--atime-preserve[=",
            "--xattrs",
            "--no-xattrs",
            "--acls",
            "--no-acls",
            "--selinux",
            "--no-selinux",
            "--checkpoint[=",
            "--warning=",
            "--force-local",
            "--quoting-style=",
            "--record-size=",
            "--hard-dereference",
            "--seek -n",
            "--no-seek",
            "--no-overwrite-dir",
            "--overwrite-dir",
            "--delay-directory-restore",
            "--no-delay-directory-restore",
            "--old-archive",
            "--posix",
            "--label= -V=",
            "--no-wildcards-match-slash",
            "--wildcards-match-slash",
            "--exclude-caches",
            "--exclude-backups",
            "--verbatim-files-from",
            "--no-verbatim-files-from",
            "--check-device",
            "--no-check-device",
            "--recursive-unlink",
            "--no-quote-chars=",
            "--keep-directory-symlink",
            "--index-file=",
            "-R --block-number",
            "--skip-old",
            "-l --check-links",
            "--clamp-mtime",
        ),
        refused={
            "-A --catenate --concatenate": "extract and create instead",
            "-M --multi-volume": "there are no tapes to change",
            "-I= --use-compress-program=": "use -z, -j, -J, --zstd or a pipe",
            "-g= --listed-incremental=": "incremental dumps are not supported",
            "-G --incremental": "incremental dumps are not supported",
            "--to-command=": "use -O and a pipe",
            "-w --interactive --confirmation": "there is no terminal to ask",
            "-Z --compress --uncompress": "the compress format is obsolete",
            "--lzip": "the lzip format is not supported",
            "--lzop": "the lzop format is not supported",
            "-L= --tape-length=": "there are no tapes",
            "-F= --info-script= --new-volume-script=": "there are no tapes",
            "--checkpoint-action=": "not supported",
            "--rmt-command=": "there are no remote tapes",
            "--rsh-command=": "there are no remote tapes",
        },
        examples=[
            ("tar czf a.tar.gz DIR", "pack a directory"),
            ("tar xf a.tar -C DIR", "unpack there"),
            ("tar tvf a.tar", "what is inside"),
        ],
    )
]
