"""zstd, unzstd and zstdcat: the .zst format."""

from __future__ import annotations

from ramet.commands.archives.compressor_options import ZstdOptions, zstd_words
from ramet.commands.archives.compressors import pack
from ramet.commands.framework.command import Command

_DICTIONARIES = (
    "-D=", "--patch-from=", "--train[=", "--train-fastcover[=", "--train-cover[=", "--train-legacy[=", "--maxdict=",
    "--dictID=", "--no-dictID",
)  # fmt: skip
COMMANDS = [
    Command(
        name,
        pack,
        ZstdOptions,
        summary=summary,
        rewrite=zstd_words,
        version_letters="V",
        ignored=(
            "-T= --threads=",
            "--long[=",
            "--no-progress",
            "--progress",
            "--adapt[=",
            "--auto-threads=",
            "--single-thread",
            "--rsyncable",
            "--size-hint=",
            "--stream-size=",
            "--target-compressed-block-size=",
            "--priority=",
            "-M= --memory=",
            "--sparse",
            "--no-sparse",
            "--trace=",
            "--exclude-compressed",
            "-B=",
        ),
        refused={
            **dict.fromkeys(_DICTIONARIES, "dictionaries are not supported"),
            **dict.fromkeys(("-b[=", "-e[=", "-i[=", "-S"), "there is no benchmark"),
        },
    )
    for name, summary in {
        "zstd": "Compress or decompress FILEs in the .zst format.",
        "unzstd": "Decompress .zst FILEs.",
        "zstdcat": "Decompress .zst FILEs to standard output.",
    }.items()
]
