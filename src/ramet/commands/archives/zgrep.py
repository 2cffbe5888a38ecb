"""zgrep, zcmp, zdiff and the same for xz and bzip2: run the tool on decompressed files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ramet.commands.framework.command import Command, UsageError
from ramet.core.ops import exists
from ramet.core.proc import Proc

_TAKES = frozenset("efmABCdD")
"""Short options of grep that take the rest of their word, or the next one."""
_TAKES_LONG = frozenset(
    ("--regexp", "--file", "--max-count", "--after-context", "--before-context", "--context", "--label")
)
_SEARCH = 'UNPACK -cdfq -- "$1" | "${@:2}"; s=("${PIPESTATUS[@]}"); [ ${s[0]} -ne 0 ] && exit 2; exit ${s[1]}'
_PLAIN = '"${@:3}" -- "$1" "$2"'
_FIRST = 'UNPACK -cdfq -- "$1" | "${@:3}" -- - "$2"'
_SECOND = 'UNPACK -cdfq -- "$2" | "${@:3}" -- "$1" -'
_BOTH = 'UNPACK -cdfq -- "$2" | "${@:3}" -- /dev/fd/5 - 5< <(UNPACK -cdfq -- "$1")'
_COMPRESSED = re.compile(r".*([-.][gx]?z|[-.]Z|\.t[abglx]z|\.tbz2?|[-.](bz2?|lzma|lz|lzo|zst))", re.DOTALL)
"""Names of files that are decompressed first."""


def _cut(words: Sequence[str], takes: frozenset[str], takes_long: frozenset[str]) -> tuple[list[str], list[str], bool]:
    """Return options with their values, operands, and whether a pattern was given among the options."""
    options: list[str] = []
    operands: list[str] = []
    pattern = False
    i = 0
    while i < len(words):
        word = words[i]
        i += 1
        if word == "--":
            operands += words[i:]
            break
        if word[:1] != "-" or word == "-":
            operands.append(word)
            continue
        options.append(word)
        if word.startswith("--"):
            name = word.partition("=")[0]
            pattern = pattern or name in ("--regexp", "--file")
            if "=" not in word and name in takes_long and i < len(words):
                options.append(words[i])
                i += 1
            continue
        for place, letter in enumerate(word[1:], 1):
            if letter in takes:
                pattern = pattern or letter in "ef"
                if place == len(word) - 1 and i < len(words):
                    options.append(words[i])
                    i += 1
                break
    return options, operands, pattern


def _searcher(program: Sequence[str], unpacker: str) -> object:
    script = _SEARCH.replace("UNPACK", unpacker)

    async def search(proc: Proc, _: None, words: list[str]) -> int:
        options, operands, given = _cut(words, _TAKES, _TAKES_LONG)
        if not given:
            if not operands:
                proc.complain(f"missing pattern; try `{proc.argv[0]} --help' for help")
                return 2
            options += ["-e", operands.pop(0)]
        if not operands:
            operands = ["-"]
        status = 1
        for word in operands:
            label = [f"--label={word}"] if word != "-" else []
            many = ["-H"] if len(operands) > 1 and not {"-h", "--no-filename"} & set(options) else []
            found = await proc.run(["bash", "-c", script, proc.argv[0], word, *program, *many, *label, *options])
            if found > 1:
                status = max(status, 2)
            elif found == 0 and status == 1:
                status = 0
        return status

    return search


def _comparer(tool: str, unpacker: str) -> object:
    async def compare(proc: Proc, _: None, words: list[str]) -> int:
        options, operands, _pattern = _cut(words, frozenset("UCIFxXWLS"), frozenset())
        if not operands:
            raise UsageError("missing operand", 2, hint=False)
        if len(operands) > 2:
            raise UsageError(f"extra operand '{operands[2]}'", 2, hint=False)
        if len(operands) == 1:
            stem, dot, suffix = operands[0].rpartition(".")
            if not dot or suffix not in _SUFFIXES[unpacker]:
                raise UsageError(f"{operands[0]}: unknown compressed file extension", 2, hint=False)
            operands.append(f"{stem}.tar" if suffix.startswith("t") else stem)
            script = _FIRST
        else:
            packed = [word == "-" or _COMPRESSED.fullmatch(word) is not None for word in operands]
            script = (_BOTH if packed[1] else _FIRST) if packed[0] else _SECOND if packed[1] else _PLAIN
            for word, is_packed in zip(operands, packed, strict=True):
                if is_packed and word != "-" and not await exists(proc.fs, proc.path(word)):
                    proc.complain(f"cannot open {word}: No such file")
                    return 2
        script = script.replace("UNPACK", unpacker)
        return await proc.run(["bash", "-c", script, proc.argv[0], *operands, tool, *options])

    return compare


_GREPS: Final = {"grep": ["grep"], "egrep": ["grep", "-E"], "fgrep": ["grep", "-F"]}
_UNPACKERS: Final = {"z": "gzip", "xz": "xz", "bz": "bzip2"}
_SUFFIXES: Final = {
    "gzip": ("gz", "z", "Z", "tgz", "taz"),
    "xz": ("xz", "lzma", "txz", "tlz"),
    "bzip2": ("bz2", "bz", "tbz", "tbz2"),
}
COMMANDS = [
    *(
        Command(
            f"{kind}{name}",
            _searcher(program, unpacker),  # type: ignore[arg-type]
            summary="Search possibly compressed files for lines that match a pattern.",
            usage="[GREP_OPTION]... PATTERN [FILE]...",
            details="Takes the options of grep, but for those that walk directories.",
            examples=(
                (f"{kind}{name} -n error log.1.{_SUFFIXES[unpacker][0]} log", "matching lines with their numbers"),
            ),
            raw=True,
            bad_usage=2,
        )
        for kind, unpacker in _UNPACKERS.items()
        for name, program in _GREPS.items()
    ),
    *(
        Command(
            f"{kind}{tool}",
            _comparer(tool, unpacker),  # type: ignore[arg-type]
            summary=f"Compare possibly compressed files with {tool}.",
            usage="[OPTION]... FILE1 [FILE2]",
            details=f"Takes the options of {tool}. Without FILE2, FILE1 is compared with the same name uncompressed.",
            raw=True,
            bad_usage=2,
        )
        for kind, unpacker in _UNPACKERS.items()
        for tool in ("cmp", "diff")
    ),
]
