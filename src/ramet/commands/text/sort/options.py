"""Options of sort, its ordering letters, and historical keys rewritten to -k."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import choose, flag, mixed, optional, ordered, several, value


@dataclass(frozen=True, slots=True)
class SortOptions:
    blanks: bool = flag("-b", "--ignore-leading-blanks", help="ignore leading blanks")
    dictionary: bool = flag("-d", "--dictionary-order", help="consider only blanks and alphanumeric characters")
    fold: bool = flag("-f", "--ignore-case", help="fold lower case to upper case characters")
    general: bool = flag("-g", "--general-numeric-sort", help="compare according to general numerical value")
    printing: bool = flag("-i", "--ignore-nonprinting", help="consider only printable characters")
    month: bool = flag("-M", "--month-sort", help="compare (unknown) < 'JAN' < ... < 'DEC'")
    human: bool = flag("-h", "--human-numeric-sort", help="compare human readable numbers (e.g., 2K 1G)")
    numeric: bool = flag("-n", "--numeric-sort", help="compare according to string numerical value")
    random: bool = flag("-R", "--random-sort", help="shuffle, but group identical keys")
    random_source: str | None = value("--random-source", metavar="FILE", help="get random bytes from FILE")
    reverse: bool = flag("-r", "--reverse", help="reverse the result of comparisons")
    word: str | None = value(
        "--sort",
        metavar="WORD",
        choices=("general-numeric", "human-numeric", "month", "numeric", "random", "version"),
        help="sort according to WORD",
    )
    version: bool = flag("-V", "--version-sort", help="natural sort of (version) numbers within text")
    check: str = mixed(
        choose({"-c": "diagnose", "-C": "quiet"}, help="check for sorted input; do not sort"),
        optional(
            "--check",
            metavar="WHEN",
            const="diagnose",
            choices=("quiet", "silent", "diagnose-first"),
            help="check for sorted input",
        ),
        default="",
    )
    files0: str | None = value(
        "--files0-from", metavar="F", help="read input from the files specified by NUL-terminated names in file F"
    )
    keys: tuple[str, ...] = several(
        "-k", "--key", metavar="KEYDEF", help="sort via a key; KEYDEF gives location and type"
    )
    merge: bool = flag("-m", "--merge", help="merge already sorted files; do not sort")
    output: str | None = value("-o", "--output", metavar="FILE", help="write result to FILE instead of standard output")
    stable: bool = flag("-s", "--stable", help="stabilize sort by disabling last-resort comparison")
    separator: str | None = value(
        "-t", "--field-separator", metavar="SEP", help="use SEP instead of non-blank to blank transition"
    )
    unique: bool = flag("-u", "--unique", help="output only the first of an equal run")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")
    buffer: str | None = value("-S", "--buffer-size", metavar="SIZE", help="accepted; memory has its own limit here")
    parallel: str | None = value("--parallel", metavar="N", help="accepted; sorts do not run side by side")
    batch: str | None = value("--batch-size", metavar="NMERGE", help="accepted; merges are as wide as they need to be")
    order: tuple[tuple[str, object], ...] = ordered()


LETTERS = {
    "b": "blanks",
    "d": "dictionary",
    "f": "fold",
    "g": "general",
    "h": "human",
    "i": "printing",
    "M": "month",
    "n": "numeric",
    "R": "random",
    "r": "reverse",
    "V": "version",
}
WORDS = {"general-numeric": "g", "human-numeric": "h", "month": "M", "numeric": "n", "random": "R", "version": "V"}


def old_keys(words: list[str]) -> list[str]:
    """`sort +1 -2`: the historical keys."""
    out: list[str] = []
    i = 0
    while i < len(words):
        found = re.fullmatch(r"\+(\d+)(?:\.(\d+))?([bdfgiMnRrV]*)", words[i])
        if found is None or "--" in out:
            out.append(words[i])
            i += 1
            continue
        start = f"{int(found[1]) + 1}" + (f".{int(found[2]) + 1}" if found[2] else "") + found[3]
        stop = re.fullmatch(r"-(\d+)(?:\.(\d+))?([bdfgiMnRrV]*)", words[i + 1]) if i + 1 < len(words) else None
        if stop is None:
            out += ["-k", start]
            i += 1
            continue
        end = f"{int(stop[1]) + (1 if stop[2] and int(stop[2]) else 0)}" + (f".{stop[2]}" if stop[2] else "") + stop[3]
        out += ["-k", f"{start},{end}"]
        i += 2
    return out
