"""gzip, gunzip, zcat and uncompress: the .gz format."""

from __future__ import annotations

from ramet.commands.archives.compressor_options import PackOptions
from ramet.commands.archives.compressors import pack
from ramet.commands.framework.command import Command

COMMANDS = [
    Command(name, pack, PackOptions, summary=summary, ignored=("--rsyncable", "--synchronous", "-a --ascii"))
    for name, summary in {
        "gzip": "Compress FILEs (by default, in place).",
        "gunzip": "Uncompress FILEs (by default, in-place).",
        "zcat": "Uncompress FILEs to standard output.",
        "uncompress": "Uncompress FILEs (by default, in-place).",
    }.items()
]
