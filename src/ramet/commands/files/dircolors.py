"""dircolors: the colours of ls from a list of types and endings into the variable that ls reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, called, choose, flag, quote
from ramet.commands.framework.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.text.glob import fnmatch


@dataclass(frozen=True, slots=True)
class DircolorsOptions:
    shell: str = choose(
        {"-b --sh --bourne-shell": "sh", "-c --csh --c-shell": "csh"},
        default="",
        help={
            "-b --sh --bourne-shell": "output Bourne shell code to set LS_COLORS",
            "-c --csh --c-shell": "output C shell code to set LS_COLORS",
        },
    )
    database: bool = flag("-p", "--print-database", help="output defaults")
    colors: bool = flag("--print-ls-colors", help="output fully escaped colors for display")


_KEYS = {
    "NORMAL": "no", "NORM": "no", "FILE": "fi", "RESET": "rs", "DIR": "di", "LNK": "ln", "LINK": "ln",
    "SYMLINK": "ln", "ORPHAN": "or", "MISSING": "mi", "FIFO": "pi", "PIPE": "pi", "SOCK": "so", "BLK": "bd",
    "BLOCK": "bd", "CHR": "cd", "CHAR": "cd", "DOOR": "do", "EXEC": "ex", "LEFT": "lc", "LEFTCODE": "lc",
    "RIGHT": "rc", "RIGHTCODE": "rc", "END": "ec", "ENDCODE": "ec", "SUID": "su", "SETUID": "su", "SGID": "sg",
    "SETGID": "sg", "STICKY": "st", "OTHER_WRITABLE": "ow", "OWR": "ow", "STICKY_OTHER_WRITABLE": "tw",
    "OWT": "tw", "CAPABILITY": "ca", "MULTIHARDLINK": "mh", "CLRTOEOL": "cl",
}  # fmt: skip
_IGNORED = frozenset({"OPTIONS", "COLOR", "EIGHTBIT"})

_DEFAULTS = """\
# The colours of ls: a type or an ending in each line, then the code of its colour.
# They count only below a TERM or COLORTERM that matches, where there is any.
COLORTERM ?*
TERM ansi
TERM *color*
TERM linux
TERM rxvt*
TERM screen*
TERM tmux*
TERM vt100
TERM xterm*
RESET 0
DIR 01;34
LINK 01;36
MULTIHARDLINK 00
FIFO 40;33
SOCK 01;35
DOOR 01;35
BLK 40;33;01
CHR 40;33;01
ORPHAN 40;31;01
MISSING 00
SETUID 37;41
SETGID 30;43
CAPABILITY 00
STICKY_OTHER_WRITABLE 30;42
OTHER_WRITABLE 34;42
STICKY 37;44
EXEC 01;32
# archives
.tar 01;31
.tgz 01;31
.zip 01;31
.gz 01;31
.bz2 01;31
.xz 01;31
.zst 01;31
.7z 01;31
.jar 01;31
.deb 01;31
.rpm 01;31
# images and films
.jpg 01;35
.jpeg 01;35
.png 01;35
.gif 01;35
.svg 01;35
.webp 01;35
.mp4 01;35
.mkv 01;35
.webm 01;35
# sound
.flac 00;36
.mp3 00;36
.ogg 00;36
.wav 00;36
# what is left of earlier versions
*~ 00;90
.bak 00;90
.orig 00;90
.rej 00;90
.swp 00;90
.tmp 00;90
"""


async def dircolors(proc: Proc, o: DircolorsOptions, operands: list[str]) -> int:
    if (o.database or o.colors) and o.shell:
        raise UsageError("the options to output non shell syntax,\nand to select a shell syntax are mutually exclusive")
    if o.database and o.colors:
        raise UsageError("options --print-database and --print-ls-colors are mutually exclusive")
    if len(operands) > (0 if o.database else 1):
        more = "\nfile operands cannot be combined with --print-database (-p)" if o.database else ""
        raise UsageError(f"extra operand {quote(operands[0 if o.database else 1])}{more}")
    if o.database:
        await proc.emit(encode(_DEFAULTS))
        return 0
    shell = o.shell
    if not shell and not o.colors:
        name = proc.env.get("SHELL", "")
        if not name:
            raise UsageError("no SHELL environment variable, and no shell type option given", hint=False)
        shell = "csh" if name.rpartition("/")[2] in ("csh", "tcsh") else "sh"
    text = _DEFAULTS
    if operands:
        try:
            text = decode(await slurp(proc, operands[0]))
        except OSError as error:
            proc.complain(f"{called(operands[0])}: {reason(error)}")
            return 1
    found: list[tuple[str, str]] = []
    status = 0
    for number, key, code, wrong in _entries(proc, text):
        if wrong:
            proc.complain(f"{called(operands[0]) if operands else '<internal>'}:{number}: {wrong}")
            status = 1
        else:
            found.append((key, code))
    if status:
        return status
    if o.colors:
        await proc.emit(encode("".join(f"\x1b[{code}m{key}\t{code}\x1b[0m\n" for key, code in found)))
        return 0
    value = "".join(f"{_escaped(key)}={_escaped(code)}:" for key, code in found).replace("'", "'\\''")
    made = f"LS_COLORS='{value}';\nexport LS_COLORS\n" if shell == "sh" else f"setenv LS_COLORS '{value}'\n"
    await proc.emit(encode(made))
    return 0


def _escaped(text: str) -> str:
    """A text in which what would end it in the variable has a backslash."""
    return re.sub(r"(?<![\\^])([=:])", r"\\\1", text)


def _entries(proc: Proc, text: str) -> Iterator[tuple[int, str, str, str]]:
    """Number of the line, key, code; or what is wrong with the line. Lines below other terminals are left out."""
    terms = {"TERM": proc.env.get("TERM") or "none", "COLORTERM": proc.env.get("COLORTERM", "")}
    state = "any"  # "no": below a terminal that is not ours; "asked": one may still match; "yes": ours
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r"#.*", "", line).strip()
        if not line:
            continue
        key, _, code = line.partition(" " if " " in line and "\t" not in line.split(" ")[0] else "\t")
        code = code.strip()
        if not code:
            yield number, "", "", "invalid line;  missing second token"
            continue
        word = key.upper()
        if word in terms:
            if fnmatch(terms[word], code):
                state = "yes"
            elif state != "yes":
                state = "asked"
            continue
        if state == "asked":
            state = "no"
        wanted = state != "no"
        if key[0] in ".*":
            if wanted:
                yield number, key if key[0] == "*" else f"*{key}", code, ""
        elif word in _IGNORED:
            continue
        elif word in _KEYS:
            if wanted:
                yield number, _KEYS[word], code, ""
        elif state in ("yes", "ours"):
            yield number, "", "", f"unrecognized keyword {key}"
        if state == "yes":
            state = "ours"


COMMANDS = [
    Command(
        "dircolors",
        dircolors,
        DircolorsOptions,
        summary="Output commands to set the LS_COLORS environment variable.",
        usage="[OPTION]... [FILE]",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
