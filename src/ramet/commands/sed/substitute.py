"""The `s` command of sed: one function per substitution, from a line to the changed line."""

from __future__ import annotations

from collections.abc import Callable

from ramet.commands.sed.program import Piece, Substitution
from ramet.concurrency.offload import checkpoint
from ramet.core.errors import LimitExceeded
from ramet.patterns import Matcher, after_char
from ramet.patterns.engines import ReEngine, Span
from ramet.text.casing import lower, upper

Change = Callable[[bytes], bytes | None]
"""The changed line, or None when nothing matched."""
Fill = Callable[[bytes, list[Span]], bytes]
"""Maps a line and the spans of a match to its replacement."""


def make(substitution: Substitution, matcher: Matcher, most: int) -> Change:
    """Compile a substitution to a function; a line of more than `most` bytes is an error."""
    pieces = substitution.pieces
    constant = constant_of(pieces)
    every, number = substitution.every, substitution.number
    if constant is not None and matcher.literal and number == 1:
        return _literal(matcher.literal, constant, every, most)
    fill = filler(pieces)
    step = after_byte if matcher.by_bytes else after_char
    general = _general(matcher, fill, every, number, needs_groups(pieces), step, most)
    if number != 1 or has_case(pieces):
        return general
    template = template_of(pieces)
    safe = most // (1 + sum(len(piece.text) if piece.group < 0 else 1 for piece in pieces))
    """Length of a line that cannot exceed `most`, whatever matches."""

    def change(line: bytes) -> bytes | None:
        engine = matcher.engine(line)
        if isinstance(engine, ReEngine) and not engine.nullable and len(line) < safe:
            changed, count = engine.pattern.subn(template, line, 0 if every else 1)
            return changed if count else None
        return general(line)

    return change


def _literal(old: bytes, new: bytes, every: bool, most: int) -> Change:
    count = -1 if every else 1
    safe = most // (1 + len(new))

    def change(line: bytes) -> bytes | None:
        if old not in line:
            return None
        if len(line) > safe:
            bounded(len(line) + (line.count(old) if every else 1) * (len(new) - len(old)), most)
        return line.replace(old, new, count)

    return change


def bounded(size: int, most: int) -> None:
    """Raise LimitExceeded if a text is too long."""
    if size > most:
        raise LimitExceeded("string_bytes", most)


def after_byte(data: bytes, pos: int) -> int:
    return pos + 1


def _general(
    matcher: Matcher,
    fill: Fill,
    every: bool,
    number: int,
    groups: bool,
    step: Callable[[bytes, int], int],
    most: int,
) -> Change:
    def change(line: bytes) -> bytes | None:
        engine = matcher.engine(line)
        pos, last, copied, seen, end = 0, -1, 0, 0, len(line)
        size = end
        out: list[bytes] = []
        while pos <= end:
            if groups:
                spans = engine.spans(line, pos)
                if spans is None:
                    break
                start, stop = spans[0]
            else:
                found = engine.search(line, pos)
                if found is None:
                    break
                start, stop = found
                spans = [found]
            if start == stop and start == last:
                # No empty match directly after a match.
                pos = step(line, start)
                continue
            seen += 1
            if not seen & 255:
                checkpoint()
            if seen >= number:
                out.append(line[copied:start])
                out.append(fill(line, spans))
                size += len(out[-1]) - (stop - start)
                bounded(size, most)
                copied = stop
                if not every:
                    break
            last = stop
            pos = stop if stop > start else step(line, start)
        if seen < number:
            return None
        out.append(line[copied:end])
        return b"".join(out)

    return change


def constant_of(pieces: tuple[Piece, ...]) -> bytes | None:
    """Return the replacement if it is constant, else None."""
    if any(piece.group >= 0 or piece.case for piece in pieces):
        return None
    return b"".join(piece.text for piece in pieces)


def needs_groups(pieces: tuple[Piece, ...]) -> bool:
    return any(piece.group > 0 for piece in pieces)


def has_case(pieces: tuple[Piece, ...]) -> bool:
    return any(piece.case for piece in pieces)


def template_of(pieces: tuple[Piece, ...]) -> bytes:
    """Convert the replacement to a template of `re`."""
    return b"".join(
        b"\\g<%d>" % piece.group if piece.group >= 0 else piece.text.replace(b"\\", b"\\\\") for piece in pieces
    )


def filler(pieces: tuple[Piece, ...]) -> Fill:
    constant = constant_of(pieces)
    if constant is not None:
        return lambda line, spans: constant
    if has_case(pieces):
        return lambda line, spans: _with_case(pieces, line, spans)

    def fill(line: bytes, spans: list[Span]) -> bytes:
        out: list[bytes] = []
        for text, group, _ in pieces:
            if group < 0:
                out.append(text)
            else:
                start, stop = spans[group]
                if start >= 0:
                    out.append(line[start:stop])
        return b"".join(out)

    return fill


def _with_case(pieces: tuple[Piece, ...], line: bytes, spans: list[Span]) -> bytes:
    """`\\U` and `\\L` last until `\\E`; `\\u` and `\\l` change the next character only."""
    out: list[str] = []
    lasting, once = "", ""
    for piece in pieces:
        for change in piece.case:
            if change in "ul":
                once = change
            else:
                lasting = "" if change == "E" else change
                if change == "E":
                    once = ""
        data = piece.text
        if piece.group >= 0:
            start, stop = spans[piece.group]
            data = line[start:stop] if start >= 0 else b""
        text = data.decode("utf-8", "surrogateescape")
        if not text:
            continue
        if lasting:
            text = upper(text) if lasting == "U" else lower(text)
        if once:
            head = upper(text[0]) if once == "u" else lower(text[0])
            text, once = head + text[1:], ""
        out.append(text)
    return "".join(out).encode("utf-8", "surrogateescape")
