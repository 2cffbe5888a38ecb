"""Quote arguments and file names in messages as GNU does, with the locale's quotes where GNU uses them."""

from __future__ import annotations

import re

from ramet.core.paths import encode
from ramet.core.proc import Proc

PLAIN_MESSAGES = re.compile(
    r"unrecognized option|invalid option|options? (?!--output)|range-endpoints|target |leading |cannot |failed "
    r"|invalid output address|extra operand .* not allowed|missing destination|invalid -[jNSsw] argument"
    r"|invalid (?:suffix in )?(?:\+|--pages) argument"
    r"|invalid --block-size argument|extra operand .*\nfile operands|when translating"
)


def typographic(proc: Proc, message: str) -> str:
    """Replace the quotes of a message by those of the locale: curly in UTF-8."""
    env = proc.env
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    if "utf" not in locale.lower() or "'" not in message:
        return message
    return _QUOTED.sub(_curly, message)


def _curly(found: re.Match[str]) -> str:
    return found[1] or f"\u2018{found[2] or found[3] or ''}\u2019".replace("\\", "\\\\")


_QUOTED = re.compile(
    r"((?:leading|with|number after|invalid character|delimiter|for a|unexpected) '[^']*'|between '.' and '.')"
    r"|(?<!\w)'([^']*)'|\"([^\"']*'[^\"]*)\""
)
"""Text quoted by `quote`, in single or double quotes; the first group is quotes that stay straight."""


def quote(text: str) -> str:
    """Quote a word as GNU does, shell-escaped where it has control characters."""
    if not misleads(text):
        return f"'{text}'"
    if "'" in text and not any(c < " " or c in '\x7f"$`\\!' or "\ud800" <= c <= "\udfff" for c in text):
        return f'"{text}"'
    out: list[str] = ["'"]
    escaped = False
    for c in text:
        odd = c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff"
        if odd != escaped:
            out.append("'$'" if odd else "''")
            escaped = odd
        if odd:
            out.append(_ESCAPES.get(c) or f"\\{encode(c)[0]:03o}")
        else:
            out.append("'\\''" if c == "'" else c)
    return "".join(out) + "'"


def misleads(text: str) -> bool:
    """Return whether a word needs escapes inside quotes."""
    return _MISLEADING.search(text) is not None


_MISLEADING = re.compile("['\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def c_escaped(text: str, also: str = "", never: str = "") -> str:
    """Escape a text as C does; characters of `also` get a backslash, those of `never` stay."""
    out: list[str] = []
    for char in text:
        if char in never:
            out.append(char)
        elif char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char == "\\" or char in also:
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        else:
            out += [f"\\{byte:03o}" for byte in encode(char)]
    return "".join(out)


_SPECIAL = frozenset(" !\"$&'()*;<=>[^`|\\?\x7f")


def shown(text: str) -> str:
    """Format a file name for messages: quoted only where a shell needs quotes."""
    if text and text[0] not in "#~" and text not in ("{", "}") and _SPECIAL.isdisjoint(text) and text.isprintable():
        return text
    return quote(text)


def called(text: str) -> str:
    """Format a file name that a colon follows: quoted also if it contains a colon."""
    return quote(text) if ":" in text else shown(text)
