"""`jq --seq`: parse texts between record separators; report and skip truncated ones."""

from __future__ import annotations

from collections.abc import Iterator

from ramet.commands.data.jq.io.reader import JsonReader, ParseError
from ramet.commands.data.jq.values import Json


class Ignored(str):
    """What was wrong with a text that is passed over."""

    __slots__ = ()


def sequence(data: bytes) -> Iterator[Json | Ignored]:
    """Yield the values of all texts in order, with what is wrong in between."""
    texts = data.split(b"\x1e")
    line, column = _moved(texts[0], 1, 0)
    if len(texts) == 1:
        if data:
            yield Ignored(f"Unfinished abandoned text at EOF at line {line}, column {column}")
        return
    for number, text in enumerate(texts[1:], 2):
        yield from _text(text, line, column + 1, number == len(texts))
        line, column = _moved(text, line, column + 1)


def _moved(text: bytes, line: int, column: int) -> tuple[int, int]:
    """Return line and column behind a text."""
    newlines = text.count(b"\n")
    return line + newlines, len(text) - text.rfind(b"\n") - 1 if newlines else column + len(text)


def _text(text: bytes, line: int, column: int, last: bool) -> Iterator[Json | Ignored]:
    end_line, end_column = _moved(text, line, column)
    place = f"{' at EOF' if last else ''} at line {end_line}, column {end_column + (not last)}"
    cut = text[-1:].strip() != b""
    reader = JsonReader()
    reader.line = line - 1
    # Blanks in front make the columns right that errors tell.
    reader.feed(b" " * column + text, True)
    held: list[Json] = []
    try:
        for value in reader.take(True):
            yield from held
            held = [value]
    except ParseError as error:
        yield from held
        if " at EOF" not in str(error):
            yield Ignored(f"{error} (need RS to resync)")
        elif last:
            yield Ignored(str(error))
        elif cut:
            yield Ignored(f"Truncated value{place}")
        return
    if held and cut and text[-1:] not in b'"]}':
        # A number or a word that nothing separates from the end may have been longer.
        if not isinstance(held[0], bool) and held[0] is not None:
            yield Ignored(f"Potentially truncated top-level numeric value{place}")
            return
        if not last:
            yield Ignored(f"Truncated value{place}")
            return
    yield from held
