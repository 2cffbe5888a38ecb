"""`jq --stream` of truncated JSON: the events before its end, and the path where it ends."""

from __future__ import annotations

import re

from ramet.commands.data.jq.values import Json, decoder

_TOKEN = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:,"\s]+)', re.DOTALL)


def broken_events(text: str) -> tuple[list[Json], list[Json]]:
    """Return the events of a text that is not whole, and the path at which it breaks off."""
    events: list[Json] = []
    path: list[Json] = []
    kinds: list[str] = []
    pending: list[Json] = []
    empty = False
    pos = 0

    def settle() -> None:
        if pending:
            events.append([list(path), pending.pop()])

    while (found := _TOKEN.match(text, pos)) is not None:
        token, pos = found[1], found.end()
        if token in "[{":
            kinds.append(token)
            path.append(0 if token == "[" else None)
            empty = True
            continue
        if token in "]}":
            if not kinds:
                break
            settle()
            kinds.pop()
            last = list(path)
            path.pop()
            if not empty:
                events.append([last])
            elif kinds:
                pending.append([] if token == "]" else {})
                empty = False
                continue
            else:
                events.append([[], [] if token == "]" else {}])
            empty = False
            continue
        empty = False
        if token == ",":
            settle()
            if kinds and kinds[-1] == "[":
                path[-1] = int(path[-1] or 0) + 1
            elif kinds:
                path[-1] = None
        elif token == ":":
            if pending:
                path[-1] = pending.pop()
        else:
            try:
                value = decoder.decode(token)
            except ValueError:
                break
            if kinds:
                pending.append(value)
            elif token[0] == '"' or pos < len(text):
                events.append([[], value])
    return events, path
