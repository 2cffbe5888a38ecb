"""The libraries that `-l` and `@load` name: the functions gawk ships as extensions, over the files of the workspace."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ramet.commands.awk.run import array_files
from ramet.commands.awk.run.values import Array, Value, num
from ramet.commands.awk.syntax.tree import AwkError
from ramet.commands.framework.file_modes import mode_of, mode_string
from ramet.core.errors import reason
from ramet.core.stat import Kind, Stat
from ramet.text.glob import fnmatch as matches

if TYPE_CHECKING:
    from ramet.commands.awk.run.streams import Runtime

Body = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Extension:
    """A function of a library: how many arguments it wants, which of them are arrays, whether it must be awaited."""

    body: Body
    least: int = 1
    most: int = 1
    arrays: tuple[int, ...] = ()
    waits: bool = False


def failed(runtime: Runtime, why: str, result: Value = -1.0) -> Value:
    runtime.special["ERRNO"] = why
    return result


# ------------------------------------------------------------------------------------------ characters and times


def _ord(runtime: Runtime, text: Value) -> Value:
    data = runtime.text(text).encode("utf-8", "surrogateescape")
    return float(data[0]) if data else 0.0


def _chr(runtime: Runtime, number: Value) -> Value:
    byte = int(num(number)) & 0xFF
    return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)


def _gettimeofday(runtime: Runtime) -> Value:
    return runtime.proc.now()


async def _sleep(runtime: Runtime, seconds: Value) -> Value:
    wanted = num(seconds)
    if wanted < 0:
        return failed(runtime, "sleep: argument is negative")
    runtime.flush()
    while wanted > 0:
        # In pieces, so that the time the program may take is looked at.
        runtime.proc.budget.check()
        await asyncio.sleep(min(wanted, 0.1))
        wanted -= 0.1
    return 0.0


# ------------------------------------------------------------------------------------------------------ files

_KINDS = {
    Kind.FILE: ("file", 0o100000),
    Kind.DIR: ("directory", 0o040000),
    Kind.LINK: ("symlink", 0o120000),
    Kind.FIFO: ("fifo", 0o010000),
    Kind.SOCKET: ("socket", 0o140000),
    Kind.DEVICE: ("chardev", 0o020000),
}
_LETTERS = {Kind.FILE: "f", Kind.DIR: "d", Kind.LINK: "l", Kind.FIFO: "p", Kind.SOCKET: "s", Kind.DEVICE: "c"}


async def _readfile(runtime: Runtime, name: Value) -> Value:
    try:
        reader = await runtime.proc.open(runtime.text(name), dash=False)
        data = b"".join([block async for block in _blocks(reader)])
        await runtime.proc.close(reader)
    except OSError as error:
        return failed(runtime, reason(error), None)
    return data.decode("utf-8" if runtime.utf8 else "ascii", "surrogateescape")


async def _blocks(reader: Any) -> Any:
    while block := await reader.read(1 << 18):
        yield block


async def _chdir(runtime: Runtime, name: Value) -> Value:
    proc = runtime.proc
    path = proc.path(runtime.text(name))
    try:
        found = await proc.fs.stat(path, follow=True)
    except OSError as error:
        return failed(runtime, reason(error))
    if not found.is_dir:
        return failed(runtime, os.strerror(errno.ENOTDIR))
    proc.cwd = runtime.moved = path
    return 0.0


async def _stat(runtime: Runtime, name: Value, into: Array, follow: Value = None) -> Value:
    into.clear()
    text = runtime.text(name)
    try:
        found = await runtime.proc.fs.stat(runtime.proc.path(text), follow=num(follow) != 0.0)
    except OSError as error:
        return failed(runtime, reason(error))
    _described(runtime, text, found, into)
    return 0.0


def _described(runtime: Runtime, name: str, found: Stat, into: Array) -> None:
    kind, bits = _KINDS[found.kind]
    user, mode, size = runtime.proc.user, mode_of(found), found.size or 0
    mtime = float((found.mtime_ns or 0) // 10**9)
    size = len((found.target or "").encode()) if found.kind is Kind.LINK else size
    numbers = {
        "dev": 1, "ino": found.inode or 0, "mode": bits | mode, "nlink": found.nlink or 1, "uid": user.uid,
        "gid": user.gid, "size": size, "blocks": -(-size // 4096) * 8, "atime": (found.accessed_ns or 0) // 10**9,
        "mtime": mtime, "ctime": mtime, "blksize": 4096, "devbsize": 512,
    }  # fmt: skip
    into.update({key: float(value) for key, value in numbers.items()})
    into.update({"name": name, "pmode": mode_string(found.kind, mode), "type": kind})
    if found.kind is Kind.LINK:
        into["linkval"] = found.target or ""


_FTS = {
    "FTS_COMFOLLOW": 1, "FTS_LOGICAL": 2, "FTS_NOCHDIR": 4, "FTS_PHYSICAL": 16, "FTS_SEEDOT": 32, "FTS_XDEV": 64,
    "FTS_SKIP": 512,
}  # fmt: skip


async def _fts(runtime: Runtime, names: Array, flags: Value, into: Array) -> Value:
    """Whole trees as arrays: an element for each entry, and in that of a directory one for each of its own."""
    wanted = int(num(flags))
    if not wanted & (_FTS["FTS_LOGICAL"] | _FTS["FTS_PHYSICAL"]):
        return failed(runtime, os.strerror(errno.EINVAL))
    into.clear()
    for name in [runtime.text(value) for value in names.values()]:
        follow = bool(wanted & (_FTS["FTS_LOGICAL"] | _FTS["FTS_COMFOLLOW"]))
        try:
            found = await runtime.proc.fs.stat(runtime.proc.path(name), follow=follow)
        except OSError as error:
            into[name] = Array({"path": name, "error": reason(error)})
            continue
        into[name] = await _tree(runtime, name, found, wanted)
    return 0.0


async def _tree(runtime: Runtime, name: str, found: Stat, flags: int, skipped: bool = False) -> Array:
    stat = Array()
    _described(runtime, name.rpartition("/")[2], found, stat)
    made = Array({"path": name, "stat": stat})
    if not found.is_dir:
        return made
    inside = Array({".": made})
    if skipped:
        return inside
    path = runtime.proc.path(name)
    for child, below in sorted([entry async for entry in runtime.proc.fs.scan(path)]):
        if flags & _FTS["FTS_LOGICAL"] and below.kind is Kind.LINK:
            try:
                below = await runtime.proc.fs.stat(path / child, follow=True)
            except OSError:
                pass  # a link that leads nowhere is shown itself
        other = flags & _FTS["FTS_XDEV"] and runtime.proc.fs.mount_of(path / child) != runtime.proc.fs.mount_of(path)
        if not other:
            inside[child] = await _tree(runtime, f"{name}/{child}", below, flags, bool(flags & _FTS["FTS_SKIP"]))
        await runtime.proc.budget.yield_turn()
    return inside


async def listing(runtime: Runtime, name: str) -> bytes:
    """A directory as the records that the library `readdir` makes of it."""
    path = runtime.proc.path(name)
    here = await runtime.proc.fs.stat(path, follow=True)
    lines = [f"{here.inode or 0}/{dots}/d\n" for dots in (".", "..")]
    async for child, found in runtime.proc.fs.scan(path):
        lines.append(f"{found.inode or 0}/{child}/{_LETTERS[found.kind]}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


# ---------------------------------------------------------------------------------------- patterns and arrays

_FNM = {"NOESCAPE": 2, "PATHNAME": 1, "PERIOD": 4, "LEADING_DIR": 8, "CASEFOLD": 16, "FILE_NAME": 1}


def _fnmatch(runtime: Runtime, pattern: Value, text: Value, flags: Value) -> Value:
    wanted, name, glob = int(num(flags)), runtime.text(text), runtime.text(pattern)
    if wanted & _FNM["NOESCAPE"]:
        glob = glob.replace("\\", "\\\\")
    names = [name]
    if wanted & _FNM["LEADING_DIR"]:
        parts = name.split("/")
        names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    if wanted & _FNM["PERIOD"] and name.startswith(".") and not glob.startswith("."):
        return 1.0
    icase, pathname = bool(wanted & _FNM["CASEFOLD"]), bool(wanted & _FNM["PATHNAME"])
    return 0.0 if any(matches(one, glob, icase=icase, pathname=pathname) for one in names) else 1.0


async def _writea(runtime: Runtime, name: Value, array: Array) -> Value:
    return await _put(runtime, runtime.text(name), array)


async def _writeall(runtime: Runtime, name: Value) -> Value:
    held = {
        key: value
        for key, value in runtime.symtab.items()
        if key not in runtime.special and key not in _OWN and not (isinstance(value, Array) and not value)
    }
    return await _put(runtime, runtime.text(name), Array(held))


_OWN = frozenset(("NR", "FNR", "NF", "RSTART", "RLENGTH", "ENVIRON", "ARGV", "PROCINFO", "SYMTAB", "FUNCTAB"))


async def _put(runtime: Runtime, name: str, array: Array) -> Value:
    try:
        out = await runtime.proc.create(name)
        out.write(array_files.packed(array, runtime.looks_numeric))
        await runtime.proc.close(out)
    except OSError as error:
        return failed(runtime, reason(error), 0.0)
    return 1.0


async def _get(runtime: Runtime, name: Value) -> Array | None:
    try:
        reader = await runtime.proc.open(runtime.text(name), dash=False)
        data = b"".join([block async for block in _blocks(reader)])
        await runtime.proc.close(reader)
    except OSError as error:
        failed(runtime, reason(error))
        return None
    try:
        return array_files.unpacked(data)
    except array_files.NotAnArray:
        failed(runtime, os.strerror(errno.EBADF))
        return None


async def _reada(runtime: Runtime, name: Value, into: Array) -> Value:
    found = await _get(runtime, name)
    if found is None:
        return 0.0
    into.clear()
    into.update(found)
    return 1.0


async def _readall(runtime: Runtime, name: Value) -> Value:
    found = await _get(runtime, name)
    if found is None:
        return 0.0
    for key, value in found.items():
        if isinstance(value, Array):
            runtime.namespace.setdefault(f"a_{key}", Array()).update(value)
        elif f"a_{key}" not in runtime.namespace:
            runtime.assign(key, value)
    return 1.0


# --------------------------------------------------------------------------------------------------- the table

LIBRARIES: Final[dict[str, dict[str, Extension]]] = {
    "ordchr": {"ord": Extension(_ord), "chr": Extension(_chr)},
    "time": {
        "gettimeofday": Extension(_gettimeofday, 0, 0),
        "sleep": Extension(_sleep, waits=True),
    },
    "readfile": {"readfile": Extension(_readfile, waits=True)},
    "filefuncs": {
        "chdir": Extension(_chdir, waits=True),
        "stat": Extension(_stat, 2, 3, (1,), waits=True),
        "fts": Extension(_fts, 3, 3, (0, 2), waits=True),
    },
    "fnmatch": {"fnmatch": Extension(_fnmatch, 3, 3)},
    "rwarray": {
        "writea": Extension(_writea, 2, 2, (1,), waits=True),
        "reada": Extension(_reada, 2, 2, (1,), waits=True),
        "writeall": Extension(_writeall, waits=True),
        "readall": Extension(_readall, waits=True),
    },
    # These have no functions, or one that is there anyway.
    "intdiv": {},
    "readdir": {},
    "revoutput": {},
    "revtwoway": {},
}
REFUSED: Final = {
    "fork": "there are no processes to be forked here",
    "inplace": "use `-i inplace'",
}
CONSTANTS: Final[dict[str, dict[str, float]]] = {
    "filefuncs": {name: float(value) for name, value in _FTS.items()},
    "fnmatch": {"FNM_NOMATCH": 1.0},
}
ARRAYS: Final[dict[str, dict[str, dict[str, float]]]] = {
    "fnmatch": {"FNM": {name: float(value) for name, value in _FNM.items()}}
}
WARNINGS: Final = {"time": "warning: The time extension is obsolete. Use the timex extension from gawkextlib instead."}


def functions_of(libraries: Iterable[str]) -> dict[str, Extension]:
    return {name: found for library in libraries for name, found in LIBRARIES[library].items()}


def check(library: str, severity: str, status: int) -> None:
    """Refuse a library that there is not."""
    if library in REFUSED:
        raise AwkError(f"{severity}: load_ext: cannot open library `{library}': {REFUSED[library]}", status)
    if library not in LIBRARIES:
        why = os.strerror(errno.ENOENT)
        raise AwkError(f"{severity}: cannot open shared library `{library}' for reading: {why}", status)


def too_few(name: str, given: int, least: int) -> Value:
    raise AwkError(f"fatal: {name}: called with {given} arguments, expecting at least {least}")


async def call(runtime: Runtime, name: str, found: Extension, args: tuple[Value, ...]) -> Value:
    """A call through a variable that names the function."""
    if len(args) < found.least:
        too_few(name, len(args), found.least)
    result = found.body(runtime, *args[: found.most])
    return await result if found.waits else result


__all__ = ["ARRAYS", "CONSTANTS", "LIBRARIES", "WARNINGS", "Extension", "functions_of"]
