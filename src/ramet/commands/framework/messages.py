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
    """A message about an argument with the quotes of the locale: curly in UTF-8, straight elsewhere."""
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
"""What `quote` has quoted, also what it puts into double quotes for a single one in it; before that what the messages
themselves have in straight quotes."""


def quote(text: str) -> str:
    """A word in GNU's quotes, shell-escaped where it has characters that would mislead."""
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
    """Whether there is something in a word that has to be escaped within quotes."""
    return _MISLEADING.search(text) is not None


_MISLEADING = re.compile("['\x00-\x1f\x7f\ud800-\udfff]")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def c_escaped(text: str, also: str = "", never: str = "") -> str:
    """A text as C writes it between quotes; `also` gets a backslash, too, and `never` is left as it is."""
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
    """A file name as GNU prints it in messages: quoted only where a shell would need quotes."""
    if text and text[0] not in "#~" and text not in ("{", "}") and _SPECIAL.isdisjoint(text) and text.isprintable():
        return text
    return quote(text)


def called(text: str) -> str:
    """A file name before the colon of a message: quoted also where it has a colon of its own."""
    return quote(text) if ":" in text else shown(text)
