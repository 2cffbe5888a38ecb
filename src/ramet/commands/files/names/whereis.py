"""whereis: binaries, sources and manual pages of a command."""

from __future__ import annotations

import contextlib

from ramet.commands.files.cp import lookup
from ramet.commands.files.names.which import known_commands
from ramet.commands.framework.command import Command, UsageError
from ramet.core.paths import encode
from ramet.core.proc import Proc

_BINARIES = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib", "/etc", "/usr/local/bin", "/usr/local/sbin", "/opt")


_MANUALS = tuple(f"{place}/man{n}" for place in ("/usr/share/man", "/usr/local/share/man") for n in range(1, 9))


_SOURCES = ("/usr/src", "/usr/local/src")


_KINDS = {"-b": "-B", "-m": "-M", "-s": "-S"}
"""Kinds of files and the option for their directories."""


class _Where:
    """Options so far, which apply to the names that follow."""

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
    """Return the places that there are, by kind."""
    out = ""
    for kind in where.wanted():
        name = {"-b": "bin", "-m": "man", "-s": "src"}[kind]
        for place in dict.fromkeys(where.places[_KINDS[kind]]):
            stat = await lookup(proc, proc.path(place), follow=True)
            out += f"{name}: {place}\n" if stat is not None and stat.is_dir else ""
    return out


async def _found(proc: Proc, where: _Where, word: str) -> str:
    """Return the line of a name: binaries that are called so, other files but for an ending."""
    name = word.rpartition("/")[2]
    counts: list[int] = []
    paths: dict[str, None] = {}
    for kind in where.wanted():
        before = len(paths)
        for place in dict.fromkeys(where.places[_KINDS[kind]]):
            if kind == "-b" and place == "/usr/bin" and name in known_commands(proc):
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
        "whereis",
        whereis,
        summary="Locate the binary, source, and manual-page files for a command.",
        usage="[-bmsul] [-BMS DIR... -f] NAME...",
        raw=True,
    ),
]
