"""Shortcut: `${x%.c}` and its like with a constant pattern, whose matcher is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ramet.shell.expand.c_locale import as_bytes, as_text, bytewise
from ramet.shell.expand.word.param_lookup import is_plain, variable
from ramet.shell.expand.word.pieces import Text
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import Param
from ramet.text.pattern.matcher import compile_pattern


def stripped(node: Param, args: list[Text]) -> Callable[[Any], Any] | None:
    """`${x%.c}` with a constant pattern, whose matcher is made once; None for any other parameter."""
    if not FAST or node.op not in ("#", "##", "%", "%%") or node.form != "value" or node.subscript is not None:
        return None
    source = args[0].const
    if not source or not is_plain(node.name):
        return None
    get, longest = variable(node.name), len(node.op) == 2
    kinds = [compile_pattern(source, extglob) for extglob in (False, True)]
    if not all(kind.quick for kind in kinds):
        return None
    remove = [kind.without_prefix if node.op[0] == "#" else kind.without_suffix for kind in kinds]

    def run(host: Any) -> str | None:
        found = get(host)
        if not found:
            return found
        if not found.isascii() and bytewise(host):
            kind = compile_pattern(as_bytes(source), "extglob" in host.shopts)
            strip = kind.without_prefix if node.op[0] == "#" else kind.without_suffix
            return as_text(strip(as_bytes(found), longest))
        return remove["extglob" in host.shopts](found, longest)

    return run
