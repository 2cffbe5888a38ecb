"""getopt: normalize the options of a script, as util-linux does."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from ramet.commands.framework.command import Command, UsageError, flag, several, value
from ramet.core.paths import encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class GetoptOptions:
    alternative: bool = flag("-a", "--alternative", help="allow long options starting with single -")
    long: tuple[str, ...] = several("-l", "--longoptions", metavar="LONGOPTS", help="the long options to be recognized")
    name: str | None = value("-n", "--name", metavar="PROGNAME", help="the name under which errors are reported")
    short: str | None = value("-o", "--options", metavar="OPTSTRING", help="the short options to be recognized")
    quiet: bool = flag("-q", "--quiet", help="disable error reporting by getopt(3)")
    silent: bool = flag("-Q", "--quiet-output", help="no normal output")
    shell: str = value("-s", "--shell", metavar="SHELL", default="bash", help="quote for SHELL: sh, bash, csh or tcsh")
    test: bool = flag("-T", "--test", help="test for getopt version")
    unquoted: bool = flag("-u", "--unquoted", help="do not quote the output")


async def getopt(proc: Proc, o: GetoptOptions, operands: list[str]) -> int:
    if o.test:
        return 4
    if o.shell not in ("sh", "bash", "csh", "tcsh"):
        raise UsageError("unknown shell after -s or --shell argument")
    words = proc.argv[1:]
    old = "GETOPT_COMPATIBLE" in proc.env or (bool(words) and not words[0].startswith("-"))
    if old:
        operands, short, plain = words[1:], words[0].lstrip("+-") if words else None, True
    elif o.short is not None:
        short, plain = o.short, o.unquoted
    else:
        short, operands, plain = (operands[0] if operands else None), operands[1:], o.unquoted
        if operands[:1] == ["--"]:
            operands = operands[1:]
    if short is None:
        raise UsageError("missing optstring argument")
    scan = _Scan(short, _long(o.long), o.alternative, "POSIXLY_CORRECT" in proc.env)
    scan.run(operands)
    if not o.quiet:
        for message in scan.errors:
            proc.stderr.write(encode(f"{o.name or 'getopt'}: {message}\n"))
            await proc.budget.yield_turn()
    if not o.silent:
        quoted = (lambda text: text) if plain else _csh if o.shell.endswith("csh") else _sh
        while scan.out:  # write in batches
            word, literal = scan.out.popleft()
            await proc.emit(encode(" " + (word if literal else quoted(word))))
            await proc.budget.yield_turn()
        await proc.emit(b"\n")
    return 1 if scan.errors else 0


def _sh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _csh(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("'", "'\\''").replace("!", "'\\!'").replace("\n", "\\n")
    return "'" + re.sub(r"[ \t\r\v\f]", lambda m: f"'\\{m[0]}'", text) + "'"


def _long(lists: tuple[str, ...]) -> dict[str, int]:
    """Long options with what they take: 0 nothing, 1 an argument, 2 perhaps one."""
    out: dict[str, int] = {}
    for name in re.split(r"[, \t\n]+", ",".join(lists)):
        bare = name.rstrip(":")
        if bare:
            out[bare] = min(2, len(name) - len(bare))
        elif name:
            raise UsageError("empty long option after -l or --long argument")
    return out


@dataclass
class _Scan:
    """Scan the arguments: options first, operands behind `--`, unless the order is kept."""

    short: str
    long: dict[str, int]
    alternative: bool
    posix: bool
    out: deque[tuple[str, bool]] = field(default_factory=deque)
    """Words, and whether they are printed unquoted."""
    errors: list[str] = field(default_factory=list)

    def run(self, words: list[str]) -> None:
        mode = self.short[:1]
        if mode in ("+", "-"):
            self.short = self.short[1:]
        self.short = self.short.removeprefix(":")
        stop = mode == "+" or (self.posix and mode != "-")
        rest: list[str] = []
        queue = deque(words)
        while queue:
            word = queue.popleft()
            if word == "--":
                rest += queue
                break
            if word.startswith("--") or (self.alternative and self._is_long(word)):
                self._take_long(word, queue)
            elif word.startswith("-") and len(word) > 1:
                self._take_short(word[1:], queue)
            elif stop:
                rest += [word, *queue]
                break
            elif mode == "-":
                self.out.append((word, False))
            else:
                rest.append(word)
        self.out.append(("--", True))
        self.out.extend((word, False) for word in rest)

    def _is_long(self, word: str) -> bool:
        """With -a: a word with one dash that is not a short option alone."""
        if len(word) < 2 or word[0] != "-":
            return False
        return len(word) > 2 or word[1] not in self.short

    def _take_long(self, word: str, queue: deque[str]) -> None:
        dashes = "--" if word.startswith("--") else "-"
        name, equals, given = word[len(dashes) :].partition("=")
        matches = [name] if name in self.long else [n for n in self.long if n.startswith(name)]
        if len(matches) != 1:
            if dashes == "-" and word[1] in self.short and not matches:
                self._take_short(word[1:], queue)
            elif matches:
                listed = " ".join(f"'{dashes}{n}'" for n in matches)
                self.errors.append(f"option '{dashes}{name}' is ambiguous; possibilities: {listed}")
            else:
                self.errors.append(f"unrecognized option '{word}'")
            return
        full = matches[0]
        takes = self.long[full]
        if equals and not takes:
            self.errors.append(f"option '{dashes}{full}' doesn't allow an argument")
            return
        if takes == 1 and not equals:
            if not queue:
                self.errors.append(f"option '{dashes}{full}' requires an argument")
                return
            given = queue.popleft()
        self.out.append((f"--{full}", True))
        if takes:
            self.out.append((given, False))

    def _take_short(self, letters: str, queue: deque[str]) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            at = self.short.find(letter) if letter != ":" else -1
            if at < 0:
                self.errors.append(f"invalid option -- '{letter}'")
                continue
            takes = len(self.short) - at - 1 - len(self.short[at + 1 :].lstrip(":"))
            if not takes:
                self.out.append((f"-{letter}", True))
                continue
            if takes == 1 and not letters:
                if not queue:
                    self.errors.append(f"option requires an argument -- '{letter}'")
                    return
                letters = queue.popleft()
            self.out += [(f"-{letter}", True), (letters, False)]
            return


COMMANDS = [
    Command(
        "getopt",
        getopt,
        GetoptOptions,
        summary="Parse the options of a script.",
        usage="OPTSTRING PARAMETERS | [OPTION]... -o OPTSTRING [OPTION]... [--] [PARAMETERS]",
        bad_usage=2,
        operands_first=True,
        examples=[('getopt -o ab: -l all,base: -n script -- "$@"', "options of a script, quoted for eval set --")],
        version_letters="V",
        help_letters="h",
    ),
]
