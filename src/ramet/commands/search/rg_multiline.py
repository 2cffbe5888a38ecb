"""`rg -U`: matches that span lines, found in the whole text and printed line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.search.grep_lines import Plan, Shared
from ramet.patterns import Matcher

Span = tuple[int, int]
Fill = Callable[[bytes, list[Span]], bytes]


@dataclass(slots=True)
class SpanSearch:
    """Search of one text; `matches` counts the matches."""

    plan: Plan
    matcher: Matcher
    name: bytes | None
    matches: int = 0
    selected: bool = False

    def run(self, data: bytes, fill: Fill | None, shared: Shared) -> bytes:
        """Return the output for a text; `fill` replaces a match."""
        plan = self.plan
        found = [span for span in self.matcher.finditer(data) if span[0] < len(data) or not data]
        self.matches = len(found)
        starts = [0]
        while (end := data.find(b"\n", starts[-1])) >= 0:
            starts.append(end + 1)
        if starts[-1] == len(data):
            starts.pop()
        hit = self.lines_of(found, starts)
        if plan.invert:
            hit = sorted(set(range(len(starts))).difference(hit))
        self.selected = bool(hit)
        if plan.quiet or not hit:
            return b""
        if plan.only_matching:
            return b"".join(self.pieces(data, found, starts, fill))
        if fill is not None and not plan.invert:
            return b"".join(self.replaced(data, found, starts, fill))
        return b"".join(self.shown(data, starts, hit, shared))

    def name_head(self, sep: bytes = b":") -> bytes:
        return b"" if self.name is None else self.name + sep

    def head(self, line: int, offset: int, sep: bytes) -> bytes:
        head = self.name_head(sep)
        if self.plan.line_number:
            head += b"%d" % (line + 1) + sep
        return head + b"%d" % offset + sep if self.plan.byte_offset else head

    def lines_of(self, found: list[Span], starts: list[int]) -> list[int]:
        hit: list[int] = []
        for start, stop in found:
            first = bisect_right(starts, start) - 1
            last = bisect_right(starts, max(start, stop - 1)) - 1
            hit.extend(range(max(first, hit[-1] + 1 if hit else 0), last + 1))
        return hit

    def line(self, data: bytes, starts: list[int], index: int) -> bytes:
        stop = starts[index + 1] if index + 1 < len(starts) else len(data)
        text = data[starts[index] : stop]
        return text if text.endswith(b"\n") else text + b"\n"

    def shown(self, data: bytes, starts: list[int], hit: list[int], shared: Shared) -> list[bytes]:
        plan, out = self.plan, list[bytes]()
        before, after, chosen = max(plan.before, 0), max(plan.after, 0), set(hit)
        last = -1
        for index in hit:
            for place in range(max(last + 1, index - before), min(index + after + 1, len(starts))):
                apart = place > last + 1 and (last >= 0 or shared.used)
                if apart and plan.separator is not None and (plan.before > 0 or plan.after > 0):
                    out.append(plan.separator + b"\n")
                sep = plan.match_mark if place in chosen else plan.context_mark
                out.append(self.head(place, starts[place], sep) + self.line(data, starts, place))
                last = place
        shared.used = shared.used or bool(out)
        return out

    def pieces(self, data: bytes, found: list[Span], starts: list[int], fill: Fill | None) -> list[bytes]:
        out: list[bytes] = []
        for start, stop in found:
            text = data[start:stop]
            if fill is not None:
                text = fill(data, self.matcher.spans(data, start) or [(start, stop)])
            first, offset = bisect_right(starts, start) - 1, start
            for place, part in enumerate(text.removesuffix(b"\n").split(b"\n")):
                out.append(self.head(first + place, offset, self.plan.match_mark) + part + b"\n")
                offset += len(part) + 1
        return out

    def replaced(self, data: bytes, found: list[Span], starts: list[int], fill: Fill) -> list[bytes]:
        """Group matches by lines; lines that a match spans are joined."""
        out: list[bytes] = []
        at = 0
        while at < len(found):
            first = bisect_right(starts, found[at][0]) - 1
            text, place = b"", starts[first]
            while True:
                start, stop = found[at]
                text += data[place:start] + fill(data, self.matcher.spans(data, start) or [(start, stop)])
                place, at = stop, at + 1
                last = bisect_right(starts, max(start, stop - 1)) - 1
                end = starts[last + 1] if last + 1 < len(starts) else len(data)
                if at >= len(found) or found[at][0] >= end:
                    break
            text += data[place:end]
            out.append(self.head(first, starts[first], self.plan.match_mark) + text.removesuffix(b"\n") + b"\n")
        return out
