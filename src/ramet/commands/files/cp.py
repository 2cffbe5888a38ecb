"""cp: copy files and trees across mounts; also the engine of mv, ln and install."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ramet.commands.files.cp_options import CpOptions
from ramet.commands.framework.command import Command, UsageError, called, quote
from ramet.commands.framework.file_modes import mode_of
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core import ops
from ramet.core.errors import Unsupported, fail, reason
from ramet.core.fs import Lending
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import Reader, Writer

TOGETHER = 256
"""Files of one directory that are copied or removed at once."""


async def lookup(proc: Proc, path: Path, follow: bool = False) -> Stat | None:
    """Return the stat of a path, None when there is nothing."""
    try:
        return await proc.fs.stat(path, follow)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise


async def destination(proc: Proc, word: str) -> Stat | None:
    """What there is where something is to go, None when there is nothing; a file in place of a directory on the way
    there is an error."""
    try:
        return await proc.stat(word)
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Pair:
    """One source and where it goes, as words for messages and as paths for work."""

    source: str
    target: str


async def pairs(
    proc: Proc, operands: list[str], target: str | None, no_target: bool, strip: bool, parents: bool = False
) -> list[Pair]:
    """Return what goes where, by the rules that cp, mv, ln and install share. Raises UsageError."""
    if strip:
        operands = [w.rstrip("/") or "/" for w in operands]
    if not operands:
        raise UsageError("missing file operand")
    if target is not None:
        if no_target:
            raise UsageError("cannot combine --target-directory (-t) and --no-target-directory (-T)", hint=False)
        stat = await lookup(proc, proc.path(target), follow=True) if target else None
        if stat is None or not stat.is_dir:
            why = "No such file or directory" if stat is None else "Not a directory"
            what = "failed to access" if proc.argv[0] == "install" else "target directory"
            raise UsageError(f"{what} {quote(target)}: {why}", hint=False)
        return [Pair(w, _inside(target, w, parents)) for w in operands]
    if len(operands) == 1:
        raise UsageError(f"missing destination file operand after {quote(operands[0])}")
    last = operands[-1]
    if no_target:
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote(operands[2])}")
        return [Pair(operands[0], last)]
    stat = await lookup(proc, proc.path(last), follow=True) if last else None
    if stat is not None and stat.is_dir:
        return [Pair(w, _inside(last, w, parents)) for w in operands[:-1]]
    if len(operands) > 2 or parents:
        if parents and len(operands) == 2:
            raise UsageError("with --parents, the destination must be a directory")
        why = "No such file or directory" if stat is None else "Not a directory"
        raise UsageError(f"target {quote(last)}: {why}", hint=False)
    return [Pair(operands[0], last)]


def _inside(directory: str, word: str, parents: bool = False) -> str:
    name = word.rstrip("/") if parents else word.rstrip("/").rpartition("/")[2]
    if parents:
        name = name.lstrip("/")
    glue = "" if directory.endswith("/") else "/"
    return f"{directory}{glue}{name}" if name not in ("", ".") else (directory if not name else f"{directory}{glue}.")


# ------------------------------------------------------------------------------------------------------- copying


@dataclass
class Copier:
    """One run of cp (or the copying half of mv across mounts)."""

    proc: Proc
    o: CpOptions
    keep_mode: bool
    keep_time: bool
    recursive: bool
    follow: str
    status: int = 0
    made: set[Path] = field(default_factory=set)
    seen: dict[tuple[Path, int], Path] = field(default_factory=dict)
    keep_links: bool = False
    drop_mode: bool = False
    verb: str = "copy"
    operands: Pair = Pair("", "")
    """The operand that is being copied."""
    inside: bool = False
    """Whether the operand is copied into itself."""
    made_first: dict[Pair, Path] = field(default_factory=dict)
    """The first directory created for each operand."""
    found_itself: bool = False

    def fail(self, message: str) -> None:
        self.proc.complain(message)
        self.status = 1

    async def copy(self, pair: Pair, top: bool = True) -> bool:
        self.operands, self.inside, self.found_itself = pair, False, False
        if not pair.source:
            self.fail(f"cannot stat '': {os.strerror(errno.ENOENT)}")
            return False
        try:
            if not pair.target:
                if (await self.proc.fs.stat(self.proc.path(pair.source), follow=True)).is_dir and self.recursive:
                    self.fail(f"cannot create directory '': {os.strerror(errno.ENOENT)}")
                    return False
                raise fail(errno.ENOENT, "")
            return await self._copy(
                pair.source, pair.target, self.proc.path(pair.source), self.proc.path(pair.target), top
            )
        except OSError as error:
            self._refused(error, pair.source, pair.target)
            return False

    def _refused(self, error: OSError, source: str, target: str) -> None:
        if error.errno == errno.EPIPE:
            raise error
        if error.errno == errno.EACCES and error.filename == self.proc.path(source):
            self.fail(f"cannot open {quote(source)} for reading: {reason(error)}")
        else:
            self.fail(f"cannot create regular file {quote(target)}: {reason(error)}")

    async def _copy(self, source: str, target: str, src: Path, dst: Path, top: bool) -> bool:
        proc, o = self.proc, self.o
        follow = self.follow == "all" or (self.follow == "args" and top)
        try:
            stat = await proc.fs.stat(src, follow)
        except OSError as error:
            self.fail(f"cannot stat {quote(source)}: {reason(error)}")
            return False
        if source.endswith("/") and not stat.is_dir:
            if (
                stat.kind is Kind.LINK
                and (followed := await lookup(proc, src, follow=True)) is not None
                and followed.is_dir
            ):
                stat = followed
            else:
                self.fail(f"cannot stat {quote(source)}: Not a directory")
                return False
        try:
            there = await destination(proc, target)
        except NotADirectoryError as error:
            self.fail(f"cannot stat {quote(target)}: {reason(error)}")
            return False
        if target.endswith("/") and not stat.is_dir and there is None:
            self.fail(f"cannot create regular file {quote(target)}: Not a directory")
            return False
        if stat.is_dir:
            return await self._directory(source, target, src, dst, stat, there, top)
        landing = there
        if there is not None and there.kind is Kind.LINK:
            landing = await lookup(proc, dst, follow=True)
            if (
                landing is None
                and stat.kind is not Kind.LINK
                and not o.remove_destination
                and not backups(o.backup, o.suffix)
                and not o.symbolic
            ):
                self.fail(f"not writing through dangling symlink {quote(target)}")
                return False
        if there is not None and not await self._may_replace(source, target, src, dst, stat, there, landing):
            return False
        if there is not None and backups(o.backup, o.suffix):
            backup = await back_up(proc, dst, o.backup, o.suffix)
            if o.verbose:
                await proc.emit(
                    encode(f"{quote(source)} -> {quote(target)} (backup: {quote(sibling(target, backup))})\n")
                )
            there = None
        elif o.verbose:
            gone = f"removed {quote(target)}\n" if there is not None and o.remove_destination else ""
            await proc.emit(encode(f"{gone}{quote(source)} -> {quote(target)}\n"))
        await self._file(source, target, src, dst, stat, there)
        self.made.add(dst)
        await proc.budget.yield_turn()
        return True

    async def _may_replace(
        self, source: str, target: str, src: Path, dst: Path, stat: Stat, there: Stat, landing: Stat | None
    ) -> bool:
        proc, o = self.proc, self.o
        if dst in self.made:
            self.fail(f"will not overwrite just-created {quote(target)} with {quote(source)}")
            return False
        if landing is not None and landing.is_dir and there.kind is not Kind.LINK:
            self.fail(f"cannot overwrite directory {quote(target)} with non-directory")
            return False
        if landing is not None and landing.is_dir:
            self.fail(f"cannot overwrite directory {quote(target)} with non-directory")
            return False
        if await self._same(src, dst, stat, there) and not o.hard:
            self.fail(f"{quote(source)} and {quote(target)} are the same file")
            return False
        if o.clobber == "never":
            return False
        if o.update and landing is not None and (landing.mtime_ns or 0) >= (stat.mtime_ns or 0):
            return False
        return o.clobber != "ask" or await confirm(proc, f"overwrite {quote(target)}?")

    async def _same(self, src: Path, dst: Path, stat: Stat, there: Stat) -> bool:
        if src == dst:
            return True
        if self.o.remove_destination:
            return False
        if there.kind is Kind.LINK and stat.kind is Kind.LINK and self.follow != "all":
            return False
        try:
            a, b = await self.proc.fs.resolve(src), await self.proc.fs.resolve(dst)
        except OSError:
            return False
        if a == b:
            return True
        return (
            stat.inode is not None
            and stat.inode == there.inode
            and self.proc.fs.mount_of(a) == self.proc.fs.mount_of(b)
        )

    async def _file(self, source: str, target: str, src: Path, dst: Path, stat: Stat, there: Stat | None) -> None:
        proc, o = self.proc, self.o
        if there is not None and (o.remove_destination or o.hard or o.symbolic or (stat.kind is Kind.LINK)):
            if (o.symbolic or o.hard) and o.clobber != "force" and not o.remove_destination:
                raise_exists = f"cannot create {'symbolic' if o.symbolic else 'hard'} link {quote(target)}"
                self.fail(f"{raise_exists}{'' if o.symbolic else ' to ' + quote(source)}: File exists")
                return
            await proc.fs.remove(dst)
            there = None
        if o.symbolic:
            if not source.startswith("/") and dst.parent != proc.cwd:
                self.fail(f"{called(target)}: can make relative symbolic links only in current directory")
                return
            await proc.fs.write(dst, encode(source), How.LINK)
            return
        if o.hard:
            await proc.fs.link(src, dst)
            return
        if self.keep_links and stat.inode is not None and (stat.nlink or 1) > 1:
            key = (proc.fs.mount_of(src), stat.inode)
            if key in self.seen:
                if there is not None:
                    await proc.fs.remove(dst)
                await proc.fs.link(self.seen[key], dst)
                return
            self.seen[key] = dst
        if stat.kind is Kind.LINK:
            await proc.fs.write(dst, encode(stat.target or ""), How.LINK)
            if self.keep_time:
                await ops.keep_link_time(proc.fs, dst, stat.mtime_ns, stat.atime_ns)
            return
        if stat.kind is Kind.FIFO and self.recursive and not o.contents:
            await proc.fs.mkfifo(dst)
            await self._attributes(dst, stat, there)
            return
        if stat.kind is Kind.SOCKET:
            self.fail(f"cannot copy special file {quote(source)}")
            return
        if o.attributes_only:
            if there is None:
                await proc.fs.write(dst, b"", How.CREATE)
        elif (stream := proc.descriptor(source)) is not None or proc.descriptor(target) is not None:
            await self._streamed(source, target, dst)
            if stream is None:
                return  # files behind descriptors keep their attributes
        else:
            await self._content(src, dst, there)
        await self._attributes(dst, stat, there)

    async def _streamed(self, source: str, target: str, dst: Path) -> None:
        """Copy from or to an open descriptor, such as a pipe."""
        proc = self.proc
        reader = await proc.open(source, dash=False)
        writer = proc.descriptor(target)
        if writer is None:
            await proc.fs.write(dst, self._blocks(reader))
        elif isinstance(writer, Writer):
            async for block in self._blocks(reader):
                writer.write(block)
                await writer.drain()
        else:
            raise fail(errno.EACCES, target)
        await proc.close(reader)

    async def _blocks(self, reader: Reader) -> AsyncIterator[bytes]:
        while block := await reader.read():
            yield block
            await self.proc.budget.yield_turn()

    async def _content(self, src: Path, dst: Path, there: Stat | None) -> bool:
        """Return the bytes; True when the mode came with them."""
        fs = self.proc.fs
        if there is None:
            try:
                await fs.copy(src, dst)
                return True
            except Unsupported:
                pass
        reader = await fs.open(src)
        await reader.close()
        await fs.write(dst, fs.read(src))
        if isinstance(fs, Lending):
            await fs.note_copy(src, dst)
        return False

    async def _attributes(self, dst: Path, stat: Stat, there: Stat | None) -> None:
        mode = mode_of(stat)
        wanted: int | None = None
        if self.keep_mode:
            wanted = mode
        elif there is None:
            wanted = (0o666 if self.drop_mode else mode & 0o777) & ~self.proc.umask
        elif there.mode is not None and there.kind is Kind.FILE:
            wanted = there.mode
        await set_attrs(self.proc, dst, self._preserved_attrs(wanted, stat))

    def _preserved_attrs(self, mode: int | None, stat: Stat) -> Attrs:
        return Attrs(mode, stat.mtime_ns, atime_ns=stat.atime_ns) if self.keep_time else Attrs(mode)

    async def _directory(
        self, source: str, target: str, src: Path, dst: Path, stat: Stat, there: Stat | None, top: bool
    ) -> bool:
        proc, o = self.proc, self.o
        if not self.recursive:
            self.fail(f"-r not specified; omitting directory {quote(source)}")
            return False
        if there is not None and not there.is_dir:
            followed = await lookup(proc, dst, follow=True) if there.kind is Kind.LINK else there
            if followed is None or not followed.is_dir or self.verb == "move":
                self.fail(f"cannot overwrite non-directory {quote(target)} with directory {quote(source)}")
                return False
        if top:
            # A link may point to it.
            origin, goal = await proc.fs.resolve(src), await proc.fs.resolve(dst, missing_ok=True)
            self.inside |= goal != origin and goal.under(origin)
        if dst == src and top and there is not None and self.verb == "copy":
            self.fail(f"{quote(source)} and {quote(target)} are the same file")
            return False
        mine = not top and (await proc.fs.resolve(src) if self.inside else src) in self.made_first.values()
        if dst == src or mine or (self.inside and (self.verb != "copy" or stat.inode is None)):
            into = f"{quote(self.operands.source)}, into itself, {quote(self.operands.target)}"
            self.fail(f"cannot {self.verb} a directory, {into}")
            self.found_itself = True
            return False
        if there is None:
            try:
                await proc.fs.mkdir(dst)
            except OSError as error:
                self.fail(f"cannot create directory {quote(target)}: {reason(error)}")
                return False
            if self.operands not in self.made_first:
                self.made_first[self.operands] = await proc.fs.resolve(dst)
            if o.verbose:
                await proc.emit(encode(f"{quote(source)} -> {quote(target)}\n"))
        entries = await ops.entries(proc.fs, src)
        if o.one_system:
            here = proc.fs.mount_of(src)
            entries = [(n, s) for n, s in entries if proc.fs.mount_of(src / n) == here]
        good = True
        glue = "" if source.endswith("/") else "/"
        glue2 = "" if target.endswith("/") else "/"
        plain = there is None and not self._slow_path and not self.inside
        # A directory copied into itself is read in inode order, as GNU does.
        entries = sorted(entries, key=lambda entry: (entry[1].inode or 0, entry[0]) if self.inside else (0, entry[0]))
        together = await self._together(src, dst, entries) if plain else set()
        for name, below in entries:
            if name in together:
                continue
            if plain and below.kind is Kind.FILE:
                try:
                    await self._quick(src / name, dst / name, below)
                except OSError as error:
                    self._refused(error, f"{source}{glue}{name}", f"{target}{glue2}{name}")
                    good = False
                continue
            good &= await self._guarded(f"{source}{glue}{name}", f"{target}{glue2}{name}", src / name, dst / name)
            if self.found_itself:
                break
        if there is None or self.keep_mode:
            mode = 0o777 if self.drop_mode else mode_of(stat)
            if not self.keep_mode:
                mode &= ~proc.umask & 0o777
            await set_attrs(proc, dst, self._preserved_attrs(mode, stat))
        return good

    @property
    def _slow_path(self) -> bool:
        o = self.o
        return o.verbose or o.symbolic or o.hard or o.attributes_only or self.keep_links or self.drop_mode

    async def _together(self, src: Path, dst: Path, entries: list[tuple[str, Stat]]) -> set[str]:
        """Copy plain files of a directory concurrently into a new directory; return their names."""
        fs, umask = self.proc.fs, self.proc.umask
        if self.keep_time or not isinstance(fs, Lending):
            return set()
        names = [
            name
            for name, stat in entries
            if stat.kind is Kind.FILE and stat.mode is not None and not stat.mode & (0o7000 | umask)
        ]
        done = 0
        while done < len(names):
            some = await fs.copy_files(src, dst, names[done : done + TOGETHER])
            if not some:
                break
            done += some
            await self.proc.budget.yield_turn()
        return set(names[:done])

    async def _quick(self, src: Path, dst: Path, stat: Stat) -> None:
        """Copy a plain file into a new directory, where nothing can be in the way."""
        with_mode = await self._content(src, dst, None)
        if not with_mode or self.keep_time or stat.mode is None or stat.mode & (0o7000 | self.proc.umask):
            await self._attributes(dst, stat, None)
        await self.proc.budget.yield_turn()

    async def _guarded(self, source: str, target: str, src: Path, dst: Path) -> bool:
        try:
            return await self._copy(source, target, src, dst, False)
        except OSError as error:
            self._refused(error, source, target)
            return False


async def set_attrs(proc: Proc, path: Path, attrs: Attrs) -> None:
    """Set the attributes that the mount supports."""
    if attrs.mode is None and attrs.mtime_ns is None:
        return
    try:
        await proc.fs.setattr(path, attrs)
    except Unsupported:
        return


async def confirm(proc: Proc, question: str) -> bool:
    """Ask on stderr, read the answer from stdin."""
    proc.stderr.write(encode(f"{proc.name}: {question} "))
    answer = await proc.stdin.readline()
    return answer[:1] in (b"y", b"Y")


def sibling(word: str, path: Path) -> str:
    head, slash, _ = word.rpartition("/")
    return f"{head}{slash}{path.name}"


def backups(kind: str, suffix: str | None) -> bool:
    """Return whether what is overwritten is kept; a suffix alone asks for it, too."""
    return bool(kind or suffix is not None) and kind not in ("none", "off")


async def back_up(proc: Proc, path: Path, kind: str, suffix: str | None) -> Path:
    """Move the file at `path` to a backup, and return its new path."""
    if kind in ("default", ""):
        kind = proc.env.get("VERSION_CONTROL", "existing")
    simple = path.parent / (path.name + (suffix or proc.env.get("SIMPLE_BACKUP_SUFFIX") or "~"))
    target = simple
    if kind in ("numbered", "t", "existing", "nil"):
        pattern = re.compile(re.escape(path.name) + r"\.~(\d+)~")
        numbers = [int(m[1]) async for name, _ in proc.fs.scan(path.parent) if (m := pattern.fullmatch(name))]
        if numbers or kind in ("numbered", "t"):
            target = path.parent / f"{path.name}.~{max(numbers, default=0) + 1}~"
    await proc.fs.rename(path, target)
    return target


_ABOUT_LINKS = ("follow", "links_d", "archive")


def check_clobbering(clobber: str, backup: str, suffix: str | None) -> None:
    if clobber == "never" and backups(backup, suffix):
        raise UsageError("options --backup and --no-clobber are mutually exclusive")


def make_copier(proc: Proc, o: CpOptions) -> Copier:
    attributes: set[str] = set()
    lists = list(o.preserve) if isinstance(o.preserve, tuple) else [o.preserve]
    for text in lists:
        for word in text.split(","):
            names = ("mode", "timestamps", "ownership", "links", "context", "xattr", "all")
            match = [n for n in names if n.startswith(word)]
            if len(match) != 1:
                raise UsageError(
                    f"invalid argument {quote(word)} for '--preserve'\nValid arguments are:\n"
                    + "\n".join(f"  - '{n}'" for n in names)
                )
            attributes |= {"mode", "timestamps", "links"} if match[0] == "all" else {match[0]}
    if o.archive:
        attributes |= {"mode", "timestamps", "links"}
    if o.links_d:
        attributes |= {"links"}
    dropped = {word for text in o.no_preserve for word in text.split(",")}
    attributes = set() if "all" in dropped else attributes - dropped
    recursive = o.recursive or o.archive
    given = [str(stored) if name == "follow" else "never" for name, stored in o.order if name in _ABOUT_LINKS]
    follow = given[-1] if given else "never" if recursive or o.links_d else "all"
    if o.hard and not o.follow:
        follow = "never"
    return Copier(
        proc,
        o,
        "mode" in attributes,
        "timestamps" in attributes,
        recursive,
        follow,
        keep_links="links" in attributes,
        drop_mode=bool(dropped & {"mode", "all"}),
    )


async def cp(proc: Proc, o: CpOptions, operands: list[str]) -> int:
    if o.hard and o.symbolic:
        raise UsageError("cannot make both hard and symbolic links")
    if o.reflink == "always" and o.sparse != "auto":
        raise UsageError("--reflink can be used only with --sparse=auto")
    check_clobbering(o.clobber, o.backup, o.suffix)
    copier = make_copier(proc, o)
    seen: set[Path] = set()
    for pair in await pairs(proc, operands, o.target, o.no_target, o.strip_slashes, o.parents):
        if not pair.source:
            await copier.copy(pair)
            continue
        if len(operands) > 2 and (src := proc.path(pair.source)) in seen and not backups(o.backup, o.suffix):
            stat = await lookup(proc, src)
            if stat is not None and (not stat.is_dir or copier.recursive):
                what = "directory" if stat.is_dir else "file"
                proc.complain(f"warning: source {what} {quote(pair.source)} specified more than once")
                continue
        seen.add(proc.path(pair.source))
        if o.parents and not await _make_parents(copier, pair):
            continue
        await copier.copy(pair)
    return copier.status


async def _make_parents(copier: Copier, pair: Pair) -> bool:
    """`--parents`: create the directories of the source below the destination."""
    proc = copier.proc
    source_dirs = pair.source.strip("/").split("/")[:-1]
    base = pair.target[: len(pair.target) - len(pair.source.strip("/"))]
    walked = "/" if pair.source.startswith("/") else ""
    for name in source_dirs:
        walked = f"{walked}{name}"
        base = f"{base}{name}"
        stat = await lookup(proc, proc.path(walked), follow=True)
        if stat is None:
            copier.fail(f"cannot stat {quote(pair.source)}: No such file or directory")
            return False
        if await lookup(proc, proc.path(base)) is None:
            await proc.fs.mkdir(proc.path(base))
            if copier.o.verbose:
                await proc.emit(encode(f"{walked} -> {base}\n"))
        walked += "/"
        base += "/"
    return True


COMMANDS = [
    Command(
        "cp",
        cp,
        CpOptions,
        summary="Copy SOURCE to DEST, or multiple SOURCE(s) to DIRECTORY.",
        usage="[OPTION]... SOURCE... DEST",
        ignored=("-Z --context[=",),
        examples=[("cp -r SRC DST", "a whole directory"), ("cp -a SRC DST", "with modes, times and links")],
        original="GNU coreutils 9.1",
        stdin_error=StdinError("", "error closing file: {}", directory="error closing file"),
    ),
]
