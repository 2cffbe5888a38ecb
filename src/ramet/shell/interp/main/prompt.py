"""Prompt strings: the backslash escapes of PS1 and PS4, and `${x@P}`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Overflow, ShellError, TooLong
from ramet.shell.expand.word import to_text as texts
from ramet.shell.syntax.nodes import DoubleQuoted, Simple, Word

if TYPE_CHECKING:
    from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.main.time_text import time_text


def decode_prompt(sh: ShellState, text: str) -> str:
    """A prompt as it would be shown; command substitutions in it are left alone."""
    out: list[str] = []
    i = 0
    while i < len(text):
        end = text.find("\\", i, len(text) - 1)  # at the very end it stands for itself
        if end < 0:
            out.append(text[i:])
            break
        out.append(text[i:end])
        code = text[end + 1]
        i = end + 2
        digits = text[i - 1 : i + 2]
        if code in "01234567" and all(digit in "01234567" for digit in digits):
            i += len(digits) - 1
            out.append(chr(int(digits, 8) & 255))
        elif code == "D" and text[i : i + 1] == "{":
            end = text.find("}", i)
            end = len(text) if end < 0 else end
            form = text[i + 1 : end]
            out.append(time_text(form or "%X", datetime.fromtimestamp(int(sh.shell.now()), UTC)))
            i = end + 1
        else:
            out.append(_escape(sh, code))
    return _expanded(sh, "".join(out)) if _expands(sh) else "".join(out)


def _expands(sh: ShellState) -> bool:
    return "promptvars" in sh.shopts or sh.posix


def _escape(sh: ShellState, code: str) -> str:
    user = sh.shell.user
    home = sh.variables.get("HOME") or ""
    if code in ("w", "W"):
        pwd = sh.pwd
        if len(home) > 1 and (pwd == home or pwd.startswith(home + "/")):
            pwd = "~" + pwd[len(home) :]
        shown = _trimmed(sh, pwd) if code == "w" else pwd.rsplit("/", 1)[-1] or "/"
        return _SPECIAL.sub(r"\\\g<0>", shown) if _expands(sh) else shown
    if code == "$":
        return "#" if user.uid == 0 else "\\$" if _expands(sh) else "$"
    now = time.gmtime(sh.shell.now())
    table = {
        "a": "\a",
        "e": "\x1b",
        "n": "\n",
        "r": "\r",
        "\\": "\\",
        "[": "",
        "]": "",
        "u": user.name,
        "h": user.host.split(".")[0],
        "H": user.host,
        "s": sh.name.rsplit("/", 1)[-1],
        "v": "5.2",
        "V": "5.2.15",
        "j": str(len(sh.jobs.jobs)),
        "l": "tty",
        "!": str(sh.history.base + len(sh.history.entries)) if "history" in sh.options else "1",
        "#": str(sh.history.commands + 1),
        "d": time.strftime("%a %b %d", now),
        "t": time.strftime("%H:%M:%S", now),
        "T": time.strftime("%I:%M:%S", now),
        "@": time.strftime("%I:%M %p", now),
        "A": time.strftime("%H:%M", now),
    }
    return table.get(code, "\\" + code)


def _trimmed(sh: ShellState, path: str) -> str:
    """A path with no more names at its end than PROMPT_DIRTRIM allows."""
    most = sh.variables.get("PROMPT_DIRTRIM") or ""
    count = int(most) if most.isdigit() and most.isascii() and len(most) < 9 else 0
    start = "~/" if path.startswith("~/") else "/"
    names = path.removeprefix(start).split("/")
    left_out = "/".join(names[:-count] if start == "~/" else ["", *names[:-count]])
    if not count or path == "~" or len(left_out) <= len("..."):
        return path
    return f"{'~/' if start == '~/' else ''}.../{'/'.join(names[-count:])}"


_SPECIAL: Final = re.compile(r'[\\$`"]')
_LOOSE: Final = re.compile(r'\\(?:[\\$`"]|\Z)?|"')
"""Backslashes and quotes of a text that is to stand in double quotes."""


def _expanded(sh: ShellState, text: str) -> str:
    """Expansion of a prompt: a backslash quotes what it quotes in double quotes."""
    if not any(char in text for char in "$`\\"):
        return text
    quoted = _LOOSE.sub(lambda found: '\\"' if found[0] == '"' else found[0] if len(found[0]) > 1 else "\\\\", text)
    word = _inside_quotes(quoted)
    if word is None:
        return text
    try:
        result = sh.text_now(texts.text(word, quoted=True))
    except (Overflow, TooLong):
        raise
    except (ArithFailure, ShellError) as error:
        sh.complain_once(error)  # an error in a prompt ends nothing
        return text
    return text if result is None else result


def expand_text(sh: ShellState, text: str) -> str:
    """Parameter and arithmetic expansion of a text as if in double quotes, as far as nothing has to wait."""
    if "$" not in text and "`" not in text:
        return text
    word = parse_quoted(text)
    if word is None:
        return text
    compiled = texts.text(word, quoted=True)
    found = sh.text_now(compiled)
    return text if found is None else found


def parse_subscript(text: str) -> Word | None:
    """A text as the subscript of an array; None when it does not parse."""
    from ramet.shell.syntax.errors import SyntaxFailure
    from ramet.shell.syntax.parser import Parser

    try:
        script = Parser(f"_[{text}]=").next()
    except SyntaxFailure:
        return None
    node = script.statements[0].node if script is not None else None
    return node.assigns[0].subscript if isinstance(node, Simple) and node.assigns else None


def parse_quoted(text: str) -> Word | None:
    """A text as the inside of double quotes, where a backslash is one; None when it does not parse."""
    return _inside_quotes(text.replace("\\", "\\\\").replace('"', '\\"'))


def _inside_quotes(text: str) -> Word | None:
    from ramet.shell.syntax.errors import SyntaxFailure
    from ramet.shell.syntax.parser import Parser

    try:
        script = Parser(f': "{text}"').next()
    except SyntaxFailure:
        return None
    if script is None:
        return None
    node = script.statements[0].node
    if not isinstance(node, Simple) or len(node.words) != 2 or not isinstance(node.words[1], Word):
        return None
    part = node.words[1].parts[0] if node.words[1].parts else None
    return Word(part.parts) if isinstance(part, DoubleQuoted) else None
