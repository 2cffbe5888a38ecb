"""The table of all commands: name -> module. Listing names imports nothing; a module is imported when it first runs."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

from ramet.core.proc import Exec, Proc

if TYPE_CHECKING:
    from ramet.commands.framework.command import Command

MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "archives.zip": "zip unzip zipinfo",
        "awk": "awk gawk mawk nawk",
        "math.bc": "bc",
        "system.cal": "cal ncal",
        "text.cat": "cat rev tee nl",
        "archives.compress": "compress",
        "archives.compressors": "gzip gunzip zcat uncompress bzip2 bunzip2 bzcat xz unxz xzcat lzma unlzma lzcat "
        "zstd unzstd zstdcat",
        "system.uuidgen": "uuidgen",
        "text.column": "column",
        "files.cp": "cp",
        "text.cut": "cut paste comm",
        "system.date": "date",
        "diff.cmp": "cmp",
        "files.dd": "dd",
        "diff.diff": "diff",
        "binary.checksums": "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
        "files.dircolors": "dircolors",
        "files.du_df_stat": "du df stat",
        "binary.od": "od",
        "binary.base64": "base64 base32 basenc",
        "text.head_tail": "head tail",
        "text.envsubst": "envsubst",
        "math.expr": "expr test [",
        "search.fd": "fd fdfind",
        "files.file": "file",
        "search.find": "find",
        "files.flock": "flock",
        "text.fmt": "fold fmt expand unexpand",
        "system.getopt": "getopt",
        "search.grep": "grep egrep fgrep",
        "data.jq": "jq",
        "binary.hexdump": "hexdump hd",
        "files.install": "install",
        "text.join": "join look",
        "system.pidof": "pidof killall pstree",
        "system.env": "env nohup nice ionice stdbuf setsid timeout time sleep watch",
        "files.ln": "ln link",
        "files.ls": "ls dir vdir",
        "files.mkdir": "mkdir mktemp mkfifo mknod",
        "system.mail": "mail",
        "files.mv": "mv",
        "system.man": "man help clear tput",
        "text.less": "less more zless zmore",
        "files.namei": "namei",
        "files.path_names": "basename dirname readlink realpath pathchk which whereis",
        "system.curl": "curl wget locate",
        "math.seq": "seq yes factor tsort",
        "math.numfmt": "numfmt",
        "system.parallel": "parallel sem",
        "patch": "patch",
        "files.chmod": "chmod chown chgrp",
        "system.pgrep": "pgrep pkill",
        "system.kill": "kill",
        "system.ps": "ps",
        "data.query": "query",
        "text.printf": "echo printf true false",
        "files.rm": "rm rmdir unlink",
        "files.shred": "shred",
        "files.rename": "rename prename file-rename",
        "search.rg": "rg",
        "sed": "sed",
        "text.shuf": "shuf",
        "text.sort": "sort",
        "text.split": "split csplit",
        "data.sqlite.command": "sqlite3",
        "binary.strings": "strings",
        "system.identity": "whoami id groups users who uname arch hostname hostid nproc uptime free tty stty getconf "
        "logname printenv sync",
        "text.tac": "tac",
        "archives.tar": "tar",
        "files.touch": "touch truncate fallocate",
        "text.iconv": "iconv dos2unix unix2dos",
        "files.tree": "tree",
        "text.uniq": "uniq tr",
        "text.wc": "wc",
        "system.xargs": "xargs",
        "archives.zgrep": "zgrep zegrep zfgrep zcmp zdiff xzgrep xzegrep xzfgrep xzcmp xzdiff bzgrep bzegrep "
        "bzfgrep bzcmp bzdiff",
        "binary.xxd": "xxd",
        "data.yq": "yq",
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
