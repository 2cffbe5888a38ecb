"""Command table: name to module. A module is imported when its command first runs."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

from ramet.concurrency.fork import renew_after_fork
from ramet.core.proc import Exec, Proc

if TYPE_CHECKING:
    from ramet.commands.framework.command import Command

MODULES: dict[str, str] = {
    name: module
    for module, names in {
        "archives.bzip2": "bzip2 bunzip2 bzcat",
        "archives.gzip": "gzip gunzip zcat uncompress",
        "archives.tar": "tar",
        "archives.unzip": "unzip zipinfo",
        "archives.xz": "xz unxz xzcat lzma unlzma lzcat",
        "archives.zgrep": "zgrep zegrep zfgrep zcmp zdiff xzgrep xzegrep xzfgrep xzcmp xzdiff bzgrep bzegrep "
        "bzfgrep bzcmp bzdiff",
        "archives.zip": "zip",
        "archives.zstd": "zstd unzstd zstdcat",
        "awk": "awk gawk mawk nawk",
        "binary.base64": "base64 base32 basenc",
        "binary.cksum": "cksum",
        "binary.hexdump": "hexdump hd",
        "binary.md5sum": "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum",
        "binary.od": "od",
        "binary.strings": "strings",
        "binary.sum": "sum",
        "binary.xxd": "xxd",
        "data.jq": "jq",
        "data.query": "query",
        "data.sqlite.command": "sqlite3",
        "data.yq": "yq",
        "diff.cmp": "cmp",
        "diff.diff": "diff",
        "files.chmod": "chmod",
        "files.chown": "chown chgrp",
        "files.cp": "cp",
        "files.dd": "dd",
        "files.fallocate": "fallocate",
        "files.file": "file",
        "files.flock": "flock",
        "files.install": "install",
        "files.listing.df": "df",
        "files.listing.du": "du",
        "files.listing.ls": "ls dir vdir",
        "files.listing.stat": "stat",
        "files.listing.tree": "tree",
        "files.ln": "ln link",
        "files.mkdir": "mkdir",
        "files.mkfifo": "mkfifo",
        "files.mknod": "mknod",
        "files.mktemp": "mktemp",
        "files.mv": "mv",
        "files.names.basename": "basename",
        "files.names.dirname": "dirname",
        "files.names.pathchk": "pathchk",
        "files.names.readlink": "readlink",
        "files.names.realpath": "realpath",
        "files.names.whereis": "whereis",
        "files.names.which": "which",
        "files.rename": "rename prename file-rename",
        "files.rm": "rm rmdir unlink",
        "files.shred": "shred",
        "files.touch": "touch",
        "files.truncate": "truncate",
        "math.bc": "bc",
        "math.factor": "factor",
        "math.numfmt": "numfmt",
        "math.seq": "seq",
        "network.curl": "curl",
        "network.wget": "wget",
        "patch": "patch",
        "script.echo": "echo",
        "script.expr": "expr",
        "script.false": "false",
        "script.printf": "printf",
        "script.test": "test [",
        "script.true": "true",
        "script.yes": "yes",
        "search.fd": "fd fdfind",
        "search.find": "find",
        "search.grep": "grep egrep fgrep",
        "search.rg": "rg",
        "sed": "sed",
        "system.clear": "clear",
        "system.date": "date",
        "system.getopt": "getopt",
        "system.help": "help",
        "system.host.free": "free",
        "system.host.getconf": "getconf",
        "system.host.groups": "groups",
        "system.host.hostname": "hostname hostid",
        "system.host.id": "id",
        "system.host.nproc": "nproc",
        "system.host.stty": "stty",
        "system.host.sync": "sync",
        "system.host.tty": "tty",
        "system.host.uname": "uname arch",
        "system.host.uptime": "uptime",
        "system.host.who": "who users",
        "system.host.whoami": "whoami logname",
        "system.locate": "locate",
        "system.mail": "mail",
        "system.man": "man",
        "system.post": "post",
        "system.process.kill": "kill",
        "system.process.pgrep": "pgrep pkill",
        "system.process.pidof": "pidof",
        "system.process.ps": "ps",
        "system.run.env": "env",
        "system.run.ionice": "ionice",
        "system.run.nice": "nice",
        "system.run.nohup": "nohup",
        "system.run.parallel": "parallel",
        "system.run.printenv": "printenv",
        "system.run.setsid": "setsid",
        "system.run.sleep": "sleep",
        "system.run.stdbuf": "stdbuf",
        "system.run.time": "time",
        "system.run.timeout": "timeout",
        "system.run.watch": "watch",
        "system.run.xargs": "xargs",
        "system.tput": "tput",
        "system.uuidgen": "uuidgen",
        "text.cat": "cat",
        "text.comm": "comm",
        "text.csplit": "csplit",
        "text.cut": "cut",
        "text.dos2unix": "dos2unix unix2dos",
        "text.envsubst": "envsubst",
        "text.head": "head",
        "text.iconv": "iconv",
        "text.join": "join",
        "text.layout.column": "column",
        "text.layout.expand": "expand",
        "text.layout.fmt": "fmt",
        "text.layout.fold": "fold",
        "text.layout.unexpand": "unexpand",
        "text.less": "less more zless zmore",
        "text.look": "look",
        "text.nl": "nl",
        "text.paste": "paste",
        "text.rev": "rev",
        "text.shuf": "shuf",
        "text.sort": "sort",
        "text.split": "split",
        "text.tac": "tac",
        "text.tail": "tail",
        "text.tee": "tee",
        "text.tr": "tr",
        "text.tsort": "tsort",
        "text.uniq": "uniq",
        "text.wc": "wc",
    }.items()
    for name in names.split()
}


_imported: set[str] = set()
"""Modules that are fully imported."""
_one_at_a_time = threading.RLock()
renew_after_fork(sys.modules[__name__], _one_at_a_time=threading.RLock)
"""Held during an import: stages of a pipeline import overlapping packages in several threads, and Python breaks such
deadlocks by handing out modules that are not ready."""


class Lazy:
    """A command that is imported on first use."""

    __slots__ = ("_command", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._command: Command | None = None

    def load(self) -> Command:
        """Import the module and return the declaration."""
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
            # A first import is slow, so it runs in a thread, unless the caller may not suspend.
            at_once = MODULES[self.name] in _imported or proc.budget.slice_end == float("inf")
            command = self.load() if at_once else await asyncio.to_thread(self.load)
        return await command(proc)

    def __repr__(self) -> str:
        return f"<command {self.name}>"


COMMANDS: dict[str, Exec] = {name: Lazy(name) for name in sorted(MODULES)}
