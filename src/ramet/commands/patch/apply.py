"""Apply hunks to lines, with offsets and fuzz; no file access."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ramet.commands.patch.hunks import Hunk
from ramet.commands.patch.merge import merged
from ramet.commands.patch.parser import ED_COMMAND


@dataclass
class Applied:
    lines: list[bytes]
    notes: list[str]
    rejects: list[Hunk]
    already: bool = False
    mismatched: bool = False
    conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """How hunks are applied: fuzz, loose whitespace, merging and #ifdef output."""

    fuzz: int = 2
    loose: bool = False
    merge: str | None = None
    """Merge hunks that do not apply; with `diff3`, conflicts include the expected lines."""
    ifdef: str | None = None
    """Keep old and new lines between #ifdef directives of this name."""
    check: Callable[[], object] = lambda: None


def _matches(lines: list[bytes], at: int, want: list[bytes], loose: bool) -> bool:
    if at < 0 or at + len(want) > len(lines):
        return False
    if not loose:
        return lines[at : at + len(want)] == want
    return all(
        re.sub(rb"\s+", b" ", x.strip()) == re.sub(rb"\s+", b" ", y.strip())
        for x, y in zip(lines[at : at + len(want)], want, strict=True)
    )


def _places(expected: int, low: int, high: int) -> Iterator[int]:
    """Yield the expected position, then others by distance."""
    if low <= expected <= high:
        yield expected
    for distance in range(1, max(expected - low, high - expected, 0) + 1):
        if low <= expected + distance <= high:
            yield expected + distance
        if low <= expected - distance <= high:
            yield expected - distance


def _conditional(body: list[tuple[str, bytes]], name: str) -> list[tuple[str, bytes]]:
    """Wrap changes in directives; removed lines stay inside them."""
    word = name.encode("utf-8", "surrogateescape")
    out: list[tuple[str, bytes]] = []
    state = " "
    for mark, text in [*body, (" ", b"")]:
        if mark == "+" and state == "-":
            out.append(("+", b"#else\n"))
        elif mark != state and state != " ":
            out.append(("+", b"#endif\n"))
            state = " "
        if mark != " " and state == " ":
            out.append(("+", (b"#ifndef " if mark == "-" else b"#ifdef ") + word + b"\n"))
        state = mark
        out.append((" " if mark == "-" else mark, text))
    out.pop()
    return out


def apply_hunks(lines: list[bytes], hunks: list[Hunk], way: Way) -> Applied:
    out: list[bytes] = []
    done = 0
    shift = 0
    result = Applied([], [], [])
    added = gone = 0
    for number, hunk in enumerate(hunks, 1):
        placed = _place(lines, hunk, done, shift, 0 if way.merge else way.fuzz, way.loose)
        if placed is None and way.merge is not None:
            expected = hunk.start - 1 + shift
            made = merged(lines, hunk, done, expected, len(out) + gone, way.merge == "diff3", way.check)
            out += lines[done : made.start] + made.lines
            result.notes.append(f"Hunk #{number} {made.told()}.")
            result.mismatched = True
            result.conflicts |= made.conflict
            done = made.stop
            gone += made.gone
            shift = made.start - (hunk.start - 1)
            added += len(made.lines) - (made.stop - made.start)
            continue
        if placed is None:
            # The position after the changes of earlier hunks.
            result.rejects.append(replace(hunk, start=hunk.start + added, new_start=hunk.new_start + added))
            result.notes.append(f"Hunk #{number} FAILED at {hunk.start + added}.")
            result.mismatched = True
            continue
        at, fuzz, lead, tail = placed
        old, marked = hunk.old(), hunk.lines
        cut_front, cut_back = lead, tail
        body = marked[cut_front : len(marked) - cut_back]
        removed = len(old) - cut_front - cut_back
        offset = at - cut_front - (hunk.start - 1)
        out += lines[done:at]
        position = at
        for mark, text in body if way.ifdef is None else _conditional(body, way.ifdef):
            if mark == "+":
                out.append(text)
            else:
                if mark == " ":
                    out.append(lines[position])
                position += 1
        moved = offset
        if (fuzz or moved != 0) and way.merge is None:
            where = at - cut_front + 1 + added
            words = f"Hunk #{number} succeeded at {where}"
            if fuzz:
                words += f" with fuzz {fuzz}"
                result.mismatched = True
            if moved:
                words += f" (offset {moved} line{'' if moved == 1 else 's'})"
                result.mismatched = True
            result.notes.append(words + ".")
        done = at + removed
        gone += sum(mark == "-" for mark, _ in body)
        shift = moved
        added += len(hunk.new()) - len(old)
    out += lines[done:]
    result.lines = out
    return result


def fuzz_needed(lines: list[bytes], hunk: Hunk, way: Way) -> int | None:
    """Return the fuzz that a hunk needs to apply; None if it does not."""
    placed = _place(lines, hunk, 0, 0, way.fuzz, way.loose)
    return None if placed is None else placed[1]


def _place(
    lines: list[bytes], hunk: Hunk, done: int, shift: int, fuzz_limit: int, loose: bool
) -> tuple[int, int, int, int] | None:
    old = hunk.old()
    lead, tail = hunk.edges()
    most = max(lead, tail)
    guess = hunk.start - 1 + shift
    if not old:
        guess = min(guess, len(lines))
        return (guess, 0, 0, 0) if guess >= done else None
    for fuzz in range(min(fuzz_limit, most) + 1):
        front, back = fuzz + lead - most, fuzz + tail - most
        # Less leading context anchors a hunk at the start of the file, less trailing context at its end.
        if front < 0 and hunk.start <= 1:
            whole = back >= 0 or len(old) == len(lines)
            candidates: Iterator[int] = iter([0] if whole and not done else [])
        elif back < 0:
            last = len(lines) - len(old)
            candidates = iter([last] if last >= done else [])
        else:
            candidates = _places(guess, done, len(lines) - len(old) + back)
        front, back = max(front, 0), max(back, 0)
        want = old[front : len(old) - back]
        for start in candidates:
            if _matches(lines, start + front, want, loose):
                return start + front, fuzz, front, back
    return None


def run_ed(lines: list[bytes], script: list[bytes]) -> list[bytes]:
    """Run an ed script of diff -e: addresses with a, c, d, and `s/.//` for lone dots."""
    out = list(lines)
    i = 0
    last = 0
    while i < len(script):
        found = ED_COMMAND.match(script[i])
        if found is None:
            if script[i].startswith(b"s/.//") and 0 < last <= len(out):
                out[last - 1] = out[last - 1][1:]
            elif script[i].startswith(b"a"):
                text, i = _ed_text(script, i + 1)
                out[last:last] = text
                last += len(text)
                continue
            i += 1
            continue
        low, kind = int(found[1]), found[3]
        high = int(found[2] or found[1])
        i += 1
        text = []
        if kind in b"ac":
            text, i = _ed_text(script, i)
        if kind == b"a":
            out[low:low] = text
            last = low + len(text)
        else:
            out[low - 1 : high] = text
            last = low - 1 + len(text)
    return out


def _ed_text(script: list[bytes], i: int) -> tuple[list[bytes], int]:
    text: list[bytes] = []
    while i < len(script) and script[i].rstrip(b"\n") != b".":
        text.append(script[i])
        i += 1
    return text, i + 1
