"""Tokens of bc."""

from __future__ import annotations

import re
from typing import NamedTuple

from ramet.concurrency.offload import checkpoint

_TOKEN = re.compile(
    r"(?P<skip>[ \t\r]+|\\\n|/\*.*?\*/|#[^\n]*)|(?P<newline>\n"
    r")|(?P<string>\"[^\"]*\")|(?P<number>(?:[0-9A-Z](?:\\\n)?)+(?:\.[0-9A-Z]*)?|\.[0-9A-Z]+|\.)"
    r"|(?P<name>[a-z][a-z0-9_]*)|(?P<op>\+\+|--|&&|\|\||[-+*/%^=<>!]=|[-+*/%^=<>!(){}\[\],;])|(?P<bad>.)",
    re.S,
)


class BcToken(NamedTuple):
    kind: str
    text: str


def tokens(text: str) -> list[BcToken]:
    out: list[BcToken] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if not len(out) & 1023:
            checkpoint()
        if kind == "skip":
            continue
        out.append(BcToken(kind, found[0].replace("\\\n", "") if kind == "number" else found[0]))
    out.append(BcToken("end", ""))
    return out
