"""`rg --json`: JSON lines for files with matches, matching lines and totals."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from ramet.patterns import Matcher


@dataclass
class Messages:
    """Write the messages of one run and sum up the statistics."""

    matcher: Matcher
    searches: int = 0
    with_match: int = 0
    searched: int = 0
    printed: int = 0
    lines: int = 0
    matches: int = 0

    def file(self, name: str, data: bytes, most: int | None) -> bytes:
        """Return the messages of one file; empty without a match."""
        path = {"text": name}
        out: list[str] = []
        number = last = lines = matches = 0
        for start, stop in self.matcher.lines(data):
            if most is not None and lines >= most:
                break
            number += data.count(b"\n", last, start) + 1
            last = min(stop + 1, len(data))
            line = data[start:stop]
            spans = [span for span in self.matcher.finditer(line) if span[1] > span[0]]
            lines += 1
            matches += len(spans)
            out.append(
                _message(
                    "match",
                    path=path,
                    lines=_text(data[start:last]),
                    line_number=number,
                    absolute_offset=start,
                    submatches=[{"match": _text(line[a:b]), "start": a, "end": b} for a, b in spans],
                )
            )
        self.searches += 1
        self.searched += len(data)
        if not lines:
            return b""
        self.with_match += 1
        self.lines += lines
        self.matches += matches
        text = _message("begin", path=path) + "".join(out)
        self.printed += len(text.encode())
        stats = _stats(1, 1, len(data), len(text.encode()), lines, matches)
        return (text + _message("end", path=path, binary_offset=None, stats=stats)).encode()

    def summary(self) -> bytes:
        stats = _stats(self.searches, self.with_match, self.searched, self.printed, self.lines, self.matches)
        data = {"elapsed_total": _ELAPSED, "stats": stats}
        # Unlike the other messages, this one has sorted keys.
        return (json.dumps({"data": data, "type": "summary"}, separators=(",", ":"), sort_keys=True) + "\n").encode()


_ELAPSED = {"human": "0.000000s", "nanos": 0, "secs": 0}
"""Constant elapsed time, so that output is reproducible."""


def _stats(searches: int, found: int, searched: int, printed: int, lines: int, matches: int) -> dict[str, Any]:
    return {
        "elapsed": {"secs": 0, "nanos": 0, "human": "0.000000s"},
        "searches": searches,
        "searches_with_match": found,
        "bytes_searched": searched,
        "bytes_printed": printed,
        "matched_lines": lines,
        "matches": matches,
    }


def _message(kind: str, **data: Any) -> str:
    return json.dumps({"type": kind, "data": data}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _text(data: bytes) -> dict[str, str]:
    """Encode text as itself, other bytes in base64."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}
