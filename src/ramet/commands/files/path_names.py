"""Names without content: basename, dirname, readlink, realpath, pathchk, which, whereis."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Container
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.files.ln import relative_to
from ramet.commands.framework.command import Command, UsageError, called, choose, flag, quote, typographic, value
from ramet.core.errors import fail, reason
from ramet.core.paths import NAME_MAX, PATH_MAX, Path, encode, parse
from ramet.core.proc import Proc
from ramet.core.stat import Kind


@dataclass(frozen=True, slots=True)
class BasenameOptions:
    multiple: bool = flag("-a", "--multiple", help="support multiple arguments and treat each as a NAME")
    suffix: str | None = value("-s", "--suffix", metavar="SUFFIX", help="remove a trailing SUFFIX; implies -a")
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


def base_name(word: str) -> str:
    if not word:
        return ""
    return word.rstrip("/").rpartition("/")[2] or "/"


async def basename(proc: Proc, o: BasenameOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    suffix = o.suffix or ""
    names = operands
    if not o.multiple and o.suffix is None:
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote(operands[2])}")
        names, suffix = operands[:1], operands[1] if len(operands) > 1 else ""
    end = "\0" if o.zero else "\n"
    for name in names:
        base = base_name(name)
        if suffix and base != suffix and base.endswith(suffix) and base != "/":
            base = base[: -len(suffix)]
        await proc.emit(encode(base + end))
        await proc.budget.yield_turn()
    return 0


@dataclass(frozen=True, slots=True)
class DirnameOptions:
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


def dir_name(word: str) -> str:
    stripped = word.rstrip("/")
    if not stripped:
        return "/" if word else "."
    head = stripped.rpartition("/")[0]
    if "/" not in stripped:
        return "."
    return head.rstrip("/") or "/"


async def dirname(proc: Proc, o: DirnameOptions, operands: list[str]) -> int:
    end = "\0" if o.zero else "\n"
    for word in operands:
        await proc.emit(encode(dir_name(word) + end))
        await proc.budget.yield_turn()
    return 0


# ---------------------------------------------------------------------------------------- readlink and realpath


def _without_parents(word: str) -> str:
    """A name in which each `..` has taken back what stands before it, whatever that is."""
    kept: list[str] = []
    for part in word.split("/"):
        if part == ".." and kept and kept[-1] not in ("..", ""):
            kept.pop()
        elif part not in ("", ".") or not kept:
            kept.append(part)
    return "/".join(kept) if kept and kept != [""] else "/" if word.startswith("/") else "."


async def canonical(proc: Proc, word: str, mode: str, *, strip: bool = False, base: Path | None = None) -> str:
    """The canonical name: `f` all but the last component must exist, `e` all, `m` none."""
    if not word:
        raise fail(errno.ENOENT, word)
    path = Path(base or proc.cwd)
    pieces = word.split("/")
    if word.startswith("/"):
        path = Path("/")
    links = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        rest = any(p not in ("", ".") for p in pieces)
        if piece in ("", "."):
            continue
        if piece == "..":
            path = path.parent
            continue
        here = path / piece
        try:
            stat = await proc.fs.stat(here)
        except OSError as error:
            if mode == "m" or (mode == "f" and not rest and error.errno == errno.ENOENT):
                path = here
                continue
            raise
        if stat.kind is Kind.LINK and not strip:
            links += 1
            if links > 40:
                if mode == "m":
                    path = here
                    continue
                raise fail(errno.ELOOP, word)
            target = stat.target or ""
            if target.startswith("/"):
                path = Path("/")
            pieces.extend(reversed(target.split("/")))
            continue
        if strip and rest and stat.kind is Kind.LINK and mode != "m":
            stat = await proc.fs.stat(here, follow=True)
        if rest and not stat.is_dir and mode != "m":
            raise fail(errno.ENOTDIR, word)
        path = here
    if word.endswith("/") and mode != "m":
        final = await lookup(proc, path)
        if final is not None and not final.is_dir:
            raise fail(errno.ENOTDIR, word)
    return str(path)


@dataclass(frozen=True, slots=True)
class ReadlinkOptions:
    mode: str = choose(
        {"-f --canonicalize": "f", "-e --canonicalize-existing": "e", "-m --canonicalize-missing": "m"},
        default="",
        help={
            "-f --canonicalize": "canonicalize; all but the last component must exist",
            "-e --canonicalize-existing": "canonicalize; all components must exist",
            "-m --canonicalize-missing": "canonicalize without requirements on existence",
        },
    )
    no_newline: bool = flag("-n", "--no-newline", help="do not output the trailing delimiter")
    verbose: bool = choose(
        {"-q -s --quiet --silent": False, "-v --verbose": True}, default=False, help="suppress or report error messages"
    )
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


async def readlink(proc: Proc, o: ReadlinkOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    status = 0
    no_newline = o.no_newline
    if no_newline and len(operands) > 1:
        proc.complain("ignoring --no-newline with multiple arguments")
        no_newline = False
    end = "" if no_newline else "\0" if o.zero else "\n"
    for word in operands:
        try:
            if o.mode:
                text = await canonical(proc, word, o.mode)
            else:
                stat = await proc.stat(word)
                if stat.kind is not Kind.LINK:
                    raise fail(errno.EINVAL, word)
                text = stat.target or ""
        except OSError as error:
            if o.verbose:
                proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        await proc.emit(encode(text + end))
    return status


@dataclass(frozen=True, slots=True)
class RealpathOptions:
    mode: str = choose(
        {"-e --canonicalize-existing": "e", "-m --canonicalize-missing": "m"},
        default="f",
        help={
            "-e --canonicalize-existing": "all components of the path must exist",
            "-m --canonicalize-missing": "no path components need exist",
        },
    )
    links: str = choose(
        {"-L --logical": "logical", "-P --physical": "physical", "-s --strip --no-symlinks": "none"},
        default="physical",
        help={
            "-L --logical": "resolve '..' components before symlinks",
            "-P --physical": "resolve symlinks as encountered (default)",
            "-s --strip --no-symlinks": "don't expand symlinks",
        },
    )
    quiet: bool = flag("-q", "--quiet", help="suppress most error messages")
    relative_to: str | None = value("--relative-to", metavar="DIR", help="print the resolved path relative to DIR")
    relative_base: str | None = value(
        "--relative-base", metavar="DIR", help="print absolute paths unless paths below DIR"
    )
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


async def realpath(proc: Proc, o: RealpathOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    end = "\0" if o.zero else "\n"

    async def resolve(word: str) -> str:
        if o.links in ("logical", "none") and word and ".." in word.split("/"):
            word = _without_parents(word)
        if o.links == "logical" and word:
            word = str(parse(word, proc.cwd))
        return await canonical(proc, word, o.mode, strip=o.links == "none")

    base = to = None
    try:
        base = Path(await resolve(o.relative_base)) if o.relative_base is not None else None
        to = Path(await resolve(o.relative_to)) if o.relative_to is not None else base
    except OSError as error:
        proc.complain(f"{called(o.relative_to or o.relative_base or '')}: {reason(error)}")
        return 1
    if base is not None and to is not None and not to.under(base):
        base = to = None
    status = 0
    for word in operands:
        try:
            path = Path(await resolve(word))
        except OSError as error:
            if not o.quiet:
                proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        text = str(path)
        if to is not None and (base is None or path.under(base)):
            text = relative_to(path, to)
        await proc.emit(encode(text + end))
    return status


# ------------------------------------------------------------------------------------------- pathchk and which


@dataclass(frozen=True, slots=True)
class PathchkOptions:
    posix: bool = flag("-p", help="check for most POSIX systems")
    empty: bool = flag("-P", help="check for empty names and leading '-'")
    portability: bool = flag("--portability", help="check for all POSIX systems (equivalent to -p -P)")


async def pathchk(proc: Proc, o: PathchkOptions, operands: list[str]) -> int:
    status = 0
    posix, strict = o.posix or o.portability, o.empty or o.portability
    for word in operands:
        await proc.budget.yield_turn()
        message = await _path_problem(proc, word, posix, strict)
        if message:
            proc.complain(
                message
                if message.startswith(("leading", "nonportable", "''")) or quote(word) not in message
                else typographic(proc, message)
            )
            status = 1
    return status


async def _path_problem(proc: Proc, word: str, posix: bool, strict: bool) -> str:
    if strict and any(piece.startswith("-") for piece in word.split("/")):
        return f"leading '-' in a component of file name {quote(word)}"
    if not word and (posix or strict):
        return "empty file name"
    if posix:
        for char in word:
            if not (char.isascii() and (char.isalnum() or char in "._-/")):
                return typographic(proc, f"nonportable character {quote(char)}") + f" in file name {quote(word)}"
    elif not word:
        return "'': No such file or directory"
    else:
        try:
            await proc.stat(word)
            return ""
        except OSError as error:
            if error.errno != errno.ENOENT:
                return f"{called(word)}: {reason(error)}"
    limit, part = (255, 14) if posix else (PATH_MAX - 1, NAME_MAX)
    size = len(encode(word))
    if size > limit:
        return f"limit {limit} exceeded by length {size} of file name {quote(word)}"
    for piece in word.split("/"):
        if len(encode(piece)) > part:
            return f"limit {part} exceeded by length {len(encode(piece))} of file name component {quote(piece)}"
    return ""


def _commands(proc: Proc) -> Container[str]:
    """The names of the commands that are there without a file."""
    from ramet.commands.framework.table import MODULES

    listed = proc.services.commands
    return MODULES if listed is None else listed


@dataclass(frozen=True, slots=True)
class WhichOptions:
    all: bool = flag("-a", help="print all matching pathnames of each argument")
    silent: bool = flag("-s", help="no output, just the exit status")


async def which(proc: Proc, o: WhichOptions, operands: list[str]) -> int:
    """The first place along PATH: a file of the tree, or /bin and /usr/bin for the commands of the table."""
    known = _commands(proc)
    status = 0 if operands else 1
    for word in operands:
        found: list[str] = []
        if "/" in word:
            place, _, name = word.rpartition("/")
            stat = await lookup(proc, proc.path(word), follow=True)
            runs = stat is not None and not stat.is_dir and (stat.mode or 0) & 0o111
            if runs or (name in known and place in ("/bin", "/usr/bin")):
                found.append(word)
        else:
            for directory in proc.env.get("PATH", "").split(":"):
                stat = await lookup(proc, proc.path(f"{directory or '.'}/{word}"), follow=True)
                runs = stat is not None and stat.is_file and (stat.mode or 0) & 0o111
                if runs or (word in known and directory in ("/bin", "/usr/bin")):
                    found.append(f"{directory or '.'}/{word}")
        if not found:
            status = 1
        elif not o.silent:
            await proc.emit(encode("".join(f"{name}\n" for name in (found if o.all else found[:1]))))
    return status


_BINARIES = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib", "/etc", "/usr/local/bin", "/usr/local/sbin", "/opt")
_MANUALS = tuple(f"{place}/man{n}" for place in ("/usr/share/man", "/usr/local/share/man") for n in range(1, 9))
_SOURCES = ("/usr/src", "/usr/local/src")
_KINDS = {"-b": "-B", "-m": "-M", "-s": "-S"}
"""The kinds of files that whereis looks for, and the option that says where."""


class _Where:
    """What whereis was asked so far: its options hold for the names that follow."""

    def __init__(self, proc: Proc) -> None:
        path = [part for part in proc.env.get("PATH", "").split(":") if part]
        self.places = {"-B": [*_BINARIES, *path], "-M": list(_MANUALS), "-S": list(_SOURCES)}
        self.kinds: list[str] = []
        self.unusual = False

    def wanted(self) -> list[str]:
        return self.kinds or list(_KINDS)


async def whereis(proc: Proc, _: None, words: list[str]) -> int:
    if not words:
        raise UsageError("not enough arguments")
    where, names, fresh = _Where(proc), 0, False
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("-h", "--help", "-V", "--version"):
            raise UsageError("bad usage")
        if word.startswith("-") and word != "-":
            for letter in word[1:]:
                option = f"-{letter}"
                if option in _KINDS:
                    where.kinds = [*(where.kinds if fresh or not names else []), option]
                    fresh = True
                elif option in where.places:
                    end = next((n for n in range(at, len(words)) if words[n].startswith("-")), len(words))
                    where.places[option], at = words[at:end], end
                elif option == "-u":
                    where.unusual = True
                elif option == "-l":
                    await proc.emit(encode(await _listed(proc, where)))
                elif option != "-f":
                    raise UsageError("bad usage")
        else:
            names, fresh = names + 1, False
            await proc.emit(encode(await _found(proc, where, word)))
    return 0


async def _listed(proc: Proc, where: _Where) -> str:
    """The places that there are, by kind."""
    out = ""
    for kind in where.wanted():
        name = {"-b": "bin", "-m": "man", "-s": "src"}[kind]
        for place in dict.fromkeys(where.places[_KINDS[kind]]):
            stat = await lookup(proc, proc.path(place), follow=True)
            out += f"{name}: {place}\n" if stat is not None and stat.is_dir else ""
    return out


async def _found(proc: Proc, where: _Where, word: str) -> str:
    """The line of a name: binaries that are called so, other files but for an ending."""
    name = word.rpartition("/")[2]
    counts: list[int] = []
    paths: dict[str, None] = {}
    for kind in where.wanted():
        before = len(paths)
        for place in dict.fromkeys(where.places[_KINDS[kind]]):
            if kind == "-b" and place == "/usr/bin" and name in _commands(proc):
                paths[f"{place}/{name}"] = None
            with contextlib.suppress(OSError):
                async for entry, stat in proc.fs.scan(proc.path(place)):
                    if not stat.is_dir and (entry == name or (kind != "-b" and entry.startswith(f"{name}."))):
                        paths[proc.path(f"{place}/{entry}")] = None
            await proc.budget.yield_turn()
        counts.append(len(paths) - before)
    if where.unusual and all(count <= 1 for count in counts):
        return ""
    return " ".join([f"{name}:", *paths]) + "\n"


COMMANDS = [
    Command(
        "basename",
        basename,
        BasenameOptions,
        summary="Print NAME with any leading directory components removed.",
        operands_first=True,
        usage="NAME [SUFFIX]",
    ),
    Command(
        "dirname",
        dirname,
        DirnameOptions,
        summary="Output each NAME with its last non-slash component removed.",
        usage="[OPTION] NAME...",
        min_operands=1,
    ),
    Command(
        "readlink",
        readlink,
        ReadlinkOptions,
        summary="Print value of a symbolic link or canonical file name.",
        usage="[OPTION]... FILE...",
    ),
    Command(
        "realpath",
        realpath,
        RealpathOptions,
        summary="Print the resolved absolute file name.",
        usage="[OPTION]... FILE...",
    ),
    Command(
        "pathchk",
        pathchk,
        PathchkOptions,
        summary="Diagnose invalid or unportable file names.",
        usage="[OPTION]... NAME...",
        min_operands=1,
    ),
    Command(
        "which",
        which,
        WhichOptions,
        summary="Locate a command.",
        usage="[-as] NAME...",
        ignored=("--skip-alias", "--skip-functions"),
    ),
    Command(
        "whereis",
        whereis,
        summary="Locate the binary, source, and manual-page files for a command.",
        usage="[-bmsul] [-BMS DIR... -f] NAME...",
        raw=True,
    ),
]
