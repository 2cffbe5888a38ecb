"""Join the values of an array to one text, by the rules of each context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ramet.shell.expand.size_check import joined
from ramet.shell.expand.word.fields import DEFAULT_IFS, delimiters, escape
from ramet.shell.expand.word.params import Found, Star, one_text, star_join
from ramet.shell.expand.word.quote_marks import Quote, alone, as_element, as_fields, as_is, regex_escape
from ramet.shell.syntax.nodes import Param


def joint(node: Param, quoted: bool, quote: Quote) -> Callable[[Any, Found], str]:
    """How the values of `${a[@]...}` join where one text is wanted: plain ones by spaces, changed ones by IFS; keys,
    slices, replacements and changes of case by IFS only within quotes. Conditions and documents have their own ways."""
    if quote is as_element:
        return one_text if quoted and "*" in (node.name, node.subscript) else _by_ifs
    if quote is as_fields and "*" in (node.name, node.subscript) and node.form == "value":
        if node.op:
            return _changed if node.op[0] in "/^,~" else _without_empty
        if node.name == "*":
            return _split_again
    if quote in DOCUMENTS and (node.op[0] in "/^,~" if node.op else node.subscript == "*" and node.form == "value"):
        return one_text
    if quote in DOCUMENTS or node.op == "@A":
        return spaced
    if (not node.op and node.form != "keys") or quote in _CONDITIONS:
        return one_text
    by_spaces = not quoted and (not node.op or node.op[0] in ":/^,~")
    return one_text if by_spaces else _star_text


DOCUMENTS: Final = (as_is, as_fields)
_CONDITIONS: Final = (alone, escape, regex_escape)


def spaced(host: Any, found: Found) -> str:
    return joined(host, " ", found) if isinstance(found, list) else one_text(host, found)


def _by_ifs(host: Any, found: Found) -> str:
    return (
        joined(host, (host.variables.get("IFS") or " ")[0], found) if isinstance(found, list) else one_text(host, found)
    )


def _split_again(host: Any, found: Found) -> str:
    """`$*` in a here-document: joined by spaces, and then what IFS holds separates once more."""
    text = spaced(host, found)
    ifs = host.variables.get("IFS")
    return delimiters(DEFAULT_IFS if ifs is None else ifs or " ")[0].sub(" ", text)


def _changed(host: Any, found: Found) -> str:
    """Replacements and changes of case of a `*` form in a here-document that has an `@` form as well."""
    ifs = host.variables.get("IFS")
    if ifs == "":
        return one_text(host, found)
    return _without_empty(host, found) if ifs is None or ifs.startswith(" ") else spaced(host, found)


def _without_empty(host: Any, found: Found) -> str:
    """Changed values of a `*` form in such a here-document: where a space separates, several of them are one."""
    if type(found) is not Star or " " not in (host.variables.get("IFS") or " "):
        return spaced(host, found)
    last = len(found) - 1
    return joined(host, " ", [value for place, value in enumerate(found) if value or place in (0, last)])


def _star_text(host: Any, found: Found) -> str:
    if type(found) is list:
        return star_join(host, found) if host.variables.get("IFS") != "" else joined(host, " ", found)
    return one_text(host, found)


LISTED: Final = (one_text, spaced, _star_text)
"""Joins for which a list of values is as good as a `Star`."""
