"""Options of gzip, bzip2, xz and zstd."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import UsageError, choose, flag, mixed, optional, value


def _mode() -> str:
    mode: str = choose(
        {"-d --decompress --uncompress": "d", "-z --compress": "z", "-t --test": "t", "-l --list": "l"},
        default="",
        help={
            "-d --decompress --uncompress": "decompress",
            "-z --compress": "compress",
            "-t --test": "test compressed file integrity",
            "-l --list": "list compressed file contents",
        },
    )
    return mode


@dataclass(frozen=True, slots=True)
class PackOptions:
    stdout: bool = flag("-c", "--stdout", "--to-stdout", help="write on standard output, keep original files unchanged")
    mode: str = _mode()
    force: bool = flag("-f", "--force", help="force overwrite of output file and compress links")
    keep: bool = flag("-k", "--keep", help="keep (don't delete) input files")
    no_name: bool = choose(
        {"-n --no-name": True, "-N --name": False},
        default=None,
        help="do not save (or restore) the original name and timestamp",
    )
    quiet: bool = flag("-q", "--quiet", help="suppress all warnings")
    recursive: bool = flag("-r", "--recursive", help="operate recursively on directories")
    suffix: str | None = value("-S", "--suffix", metavar="SUF", help="use suffix SUF on compressed files")
    verbose: bool = flag("-v", "--verbose", help="verbose mode")
    level: int | None = mixed(
        choose(
            {**{f"-{n}": n for n in range(10)}, "--fast": 1, "--best": 9},
            help="compression level: -1 is fast, -9 is best",
        ),
        default=None,
    )
    extreme: bool = flag("-e", "--extreme", help="try to improve compression ratio by using more CPU time")
    small: bool = flag("-s", "--small", help="use less memory")
    asked: bool = flag("-h", help="give this help")
    licence: bool = flag("-L", "--license", help="display software license")
    output: str | None = None


def _file_format(text: str) -> str:
    if text == "raw":
        raise UsageError("raw: filter chains are not supported", hint=False)
    if text not in ("auto", "xz", "lzma", "alone"):
        raise UsageError(f"{text}: Unknown file format type", hint=False)
    return text


@dataclass(frozen=True, slots=True)
class XzOptions(PackOptions):
    check: str = value(
        "-C", "--check", metavar="CHECK", default="crc64", choices=("none", "crc32", "crc64", "sha256"), help="checksum"
    )
    kind: str = value(
        "-F",
        "--format",
        metavar="FORMAT",
        default="auto",
        convert=_file_format,
        help="file format: auto, xz, lzma or alone",
    )
    single: bool = flag("--single-stream", help="decompress only the first stream, and ignore what follows it")
    robot: bool = flag("--robot", help="with -l, messages for programs")
    long_help: bool = flag("-H", "--long-help", help="give this help")
    names: str | None = optional("--files", metavar="FILE", const="-", help="read names, one in a line, from FILE")
    names0: str | None = optional("--files0", metavar="FILE", const="-", help="the same with a null byte behind each")


@dataclass(frozen=True, slots=True)
class ZstdOptions:
    stdout: bool = flag("-c", "--stdout", help="write on standard output, even if it is the console")
    mode: str = _mode()
    force: bool = flag("-f", "--force", help="overwrite without prompting, operate on links")
    keep: bool = choose(
        {"-k --keep": True, "--rm": False},
        default=True,
        help={
            "-k --keep": "preserve source files (default)",
            "--rm": "remove source files after successful (de)compression",
        },
    )
    quiet: bool = flag("-q", "--quiet", help="suppress warnings")
    recursive: bool = flag("-r", help="operate recursively on directories")
    verbose: bool = flag("-v", "--verbose", help="verbose mode")
    level: int | None = mixed(
        choose({**{f"-{n}": n for n in range(1, 10)}}, help="compression level (1-19, default 3)"),
        value("--level", metavar="N", convert=int, help="compression level"),
        default=None,
    )
    ultra: bool = flag("--ultra", help="levels beyond 19, up to 22")
    output: str | None = value("-o", metavar="FILE", help="result stored into FILE")
    check: bool = choose({"--check": True, "--no-check": False}, default=True, help="a checksum in each frame")
    kind: str = value(
        "--format", metavar="FORMAT", default="zstd", choices=("zstd", "gzip", "xz", "lzma"), help="file format"
    )
    into: str | None = value("--output-dir-flat", metavar="DIR", help="results are stored into DIR")
    mirror: str | None = value("--output-dir-mirror", metavar="DIR", help="results in DIR, below the names of FILEs")
    names: str | None = value("--filelist", metavar="FILE", help="read names, one in a line, from FILE")
    asked: bool = flag("-h", "-H", help="give this help")
    no_name: bool | None = None
    suffix: str | None = None


def zstd_words(words: list[str]) -> list[str]:
    """`-19`, `--fast=3`, `-T0`: levels of two digits and thread counts."""
    out: list[str] = []
    for word in words:
        if re.fullmatch(r"-\d\d", word):
            out.append(f"--level={word[1:]}")
        elif found := re.fullmatch(r"--fast(?:=(\d+))?", word):
            out.append(f"--level=-{found[1] or 1}")
        else:
            out.append(word)
    return out
