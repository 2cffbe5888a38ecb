"""bzip2, bunzip2 and bzcat: the .bz2 format."""

from __future__ import annotations

from ramet.commands.archives.compressor_options import PackOptions
from ramet.commands.archives.compressors import pack
from ramet.commands.framework.command import Command

_IGNORED = (
    "-T= --threads=",
    "-Q --no-warn",
    "-M= --memory= --memlimit=",
    "--memlimit-compress=",
    "--memlimit-decompress=",
    "--memlimit-mt-decompress=",
    "--no-adjust",
    "--no-sparse",
    "--ignore-check",
    "--block-size=",
    "--block-list=",
    "--flush-timeout=",
)
COMMANDS = [
    Command(name, pack, PackOptions, summary=summary, ignored=_IGNORED, version_letters="V")
    for name, summary in {
        "bzip2": "Compress FILEs with the Burrows-Wheeler algorithm.",
        "bunzip2": "Uncompress .bz2 FILEs.",
        "bzcat": "Uncompress .bz2 FILEs to standard output.",
    }.items()
]
