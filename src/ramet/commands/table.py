"""The table of all commands: name -> module. Listing names imports nothing; a module is imported when it first runs."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

from ramet.core.proc import Exec, Proc

if TYPE_CHECKING:
    from ramet.commands.declare import Command

MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "archive_zip": "zip unzip zipinfo",
        "awk": "awk gawk mawk nawk",
        "bc": "bc",
        "calendars": "cal ncal",
        "cat": "cat rev tee nl",
        "old_compress": "compress",
        "compress": "gzip gunzip zcat uncompress bzip2 bunzip2 bzcat xz unxz xzcat lzma unlzma lzcat "
        "zstd unzstd zstdcat",
        "col": "col colrm ul uuidgen mcookie",
        "column": "column",
        "copy": "cp",
        "cut": "cut paste comm",
        "date": "date",
        "cmp": "cmp",
        "dd": "dd",
        "dc": "dc",
        "diff": "diff",
        "diff3": "diff3",
        "digest": "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
        "dircolors": "dircolors",
        "disk": "du df stat",
        "dump": "od",
        "encode": "base64 base32 basenc",
        "ends": "head tail",
        "ed": "ed",
        "envsubst": "envsubst",
        "expr": "expr test [",
        "fd": "fd fdfind",
        "file_type": "file",
        "find": "find",
        "flock": "flock",
        "fmt": "fold fmt expand unexpand",
        "getopt": "getopt",
        "grep": "grep egrep fgrep",
        "jq": "jq",
        "hexdump": "hexdump hd",
        "install": "install",
        "join": "join look",
        "killall": "pidof killall pstree",
        "launch": "env nohup nice ionice stdbuf setsid timeout time sleep watch",
        "link": "ln link",
        "ls": "ls dir vdir",
        "make": "mkdir mktemp mkfifo mknod",
        "mail": "mail",
        "move": "mv",
        "manual": "man help clear tput",
        "pagers": "less more zless zmore",
        "namei": "namei",
        "names": "basename dirname readlink realpath pathchk which whereis",
        "network": "curl wget locate",
        "numbers": "seq yes factor tsort",
        "numfmt": "numfmt",
        "parallel": "parallel sem",
        "patch": "patch",
        "permissions": "chmod chown chgrp",
        "pgrep": "pgrep pkill",
        "pr": "pr",
        "processes": "kill",
        "ps": "ps",
        "query": "query",
        "printf": "echo printf true false",
        "remove": "rm rmdir unlink",
        "shred": "shred",
        "rename": "rename prename file-rename",
        "rg": "rg",
        "sdiff": "sdiff",
        "sed": "sed",
        "shuf": "shuf",
        "sort": "sort",
        "split": "split csplit",
        "sqlite": "sqlite3",
        "strings": "strings",
        "system": "whoami id groups users who uname arch hostname hostid nproc uptime free tty stty getconf logname "
        "printenv sync",
        "tac": "tac",
        "tar": "tar",
        "touch": "touch truncate fallocate",
        "transcode": "iconv dos2unix unix2dos",
        "tree": "tree",
        "uniq": "uniq tr",
        "wc": "wc",
        "xargs": "xargs",
        "zipped": "zgrep zegrep zfgrep zcmp zdiff xzgrep xzegrep xzfgrep xzcmp xzdiff bzgrep bzegrep bzfgrep bzcmp "
        "bzdiff",
        "xxd": "xxd",
        "yq": "yq",
    }.items()
    for name in names.split()
}


_imported: set[str] = set()
"""Modules that a command was taken from."""
_one_at_a_time = threading.RLock()
"""Held while one is imported: the stages of a pipeline come to the same packages from different sides, and Python would
rather give a thread a module that is not ready than let two of them wait for each other."""


class Lazy:
    """A command that is imported when it is first needed."""

    __slots__ = ("_command", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._command: Command | None = None

    def load(self) -> Command:
        """The declaration, for `man`, documentation and schemas."""
        if self._command is None:
            place = MODULES[self.name]
            with nullcontext() if place in _imported else _one_at_a_time:
                module = import_module(f"ramet.commands.{place}")
            for command in module.COMMANDS:
                if self.name == command.name or self.name in command.aliases:
                    self._command = command
                    break
            else:
                raise LookupError(f"{place} does not define {self.name}")
            _imported.add(place)
        return self._command

    async def __call__(self, proc: Proc) -> int:
        command = self._command
        if command is None:
            # What is imported the first time takes its time, in which others run; nobody does where nothing may wait.
            at_once = MODULES[self.name] in _imported or proc.budget.slice_end == float("inf")
            command = self.load() if at_once else await asyncio.to_thread(self.load)
        return await command(proc)

    def __repr__(self) -> str:
        return f"<command {self.name}>"


COMMANDS: dict[str, Exec] = {name: Lazy(name) for name in sorted(MODULES)}
