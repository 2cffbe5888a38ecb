"""xz, unxz, xzcat, lzma, unlzma and lzcat: the .xz and .lzma formats."""

from __future__ import annotations

from ramet.commands.archives.compressor_options import XzOptions
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
_FILTERS = (
    "--lzma1", "--lzma2", "--x86", "--arm", "--armthumb", "--arm64", "--ia64", "--powerpc", "--sparc", "--delta",
)  # fmt: skip
COMMANDS = [
    Command(
        name,
        pack,
        XzOptions,
        summary=summary,
        ignored=_IGNORED,
        version_letters="V",
        refused={
            "--info-memory": "the memory of the machine is not shown",
            **{f"{option}[=": "filter chains are not supported" for option in _FILTERS},
        },
    )
    for name, summary in {
        "xz": "Compress or decompress FILEs in the .xz format.",
        "unxz": "Decompress .xz FILEs.",
        "xzcat": "Decompress .xz FILEs to standard output.",
        "lzma": "Compress FILEs in the .lzma format.",
        "unlzma": "Decompress .lzma FILEs.",
        "lzcat": "Decompress .lzma FILEs to standard output.",
    }.items()
]
