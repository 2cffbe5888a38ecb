"""gzip, gunzip, zcat and uncompress: the .gz format."""

from __future__ import annotations

from typing import Final

from ramet.commands.archives.compressor_options import PackOptions
from ramet.commands.archives.compressors import pack
from ramet.commands.framework.command import Command
from ramet.commands.framework.stdin_errors import StdinError

_STDIN: Final = StdinError("gzip: standard input: {}", directory="\ngzip: stdin: {}", fatal=True, named=False)

COMMANDS = [
    Command(
        name,
        pack,
        PackOptions,
        summary=summary,
        ignored=("--rsyncable", "--synchronous", "-a --ascii"),
        version_letters="" if name == "uncompress" else "V",
        hint="`{} --help'" if name == "gzip" else "'{} --help'",
        stdin_error=None if name == "uncompress" else _STDIN,
    )
    for name, summary in {
        "gzip": "Compress FILEs (by default, in place).",
        "gunzip": "Uncompress FILEs (by default, in-place).",
        "zcat": "Uncompress FILEs to standard output.",
        "uncompress": "Uncompress FILEs (by default, in-place).",
    }.items()
]
