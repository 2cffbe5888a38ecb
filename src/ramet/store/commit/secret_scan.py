"""Scan new content for secrets: known key formats, and random values of names such as `token`.

The scan is off by default. Findings are reported by path and kind, never by content. With `refuse`, a chunk with a
finding is not written.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import Final, Literal

from ramet.core.errors import RametError

ScanMode = Literal["off", "report", "refuse"]
SCAN_MODES: Final[tuple[ScanMode, ...]] = ("off", "report", "refuse")
ENTROPY: Final = 3.5
"""Bits per character from which on a value counts as random."""

FORMS: Final[dict[str, bytes]] = {
    "private_key": rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    "aws_access_key": rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "github_token": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b",
    "gitlab_token": rb"\bglpat-[A-Za-z0-9_-]{20,64}\b",
    "slack_token": rb"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}\b",
    "google_key": rb"\bAIza[0-9A-Za-z_-]{35}\b",
    "stripe_key": rb"\b[rs]k_live_[0-9A-Za-z]{24,247}\b",
    "model_key": rb"\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{32,200}\b",
    "npm_token": rb"\bnpm_[A-Za-z0-9]{36}\b",
    "pypi_token": rb"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,200}",
    "hugging_face_token": rb"\bhf_[A-Za-z0-9]{30,64}\b",
    "web_token": rb"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}",
}
_VALUE: Final = (
    rb"""(?i:secret|token|passw(?:or)?d|api[_-]?key|credential)["']?[ \t]{0,8}[:=][ \t]{0,8}["']?"""
    rb"""([A-Za-z0-9+/_=.-]{20,200})"""
)
_START: Final = rb"BEGIN |AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox|AIza|_live_|sk-|npm_|pypi-|hf_|eyJ"
"""Every known format contains one of these; most content has none, and is done after one search."""


@cache
def _patterns() -> tuple[re.Pattern[bytes], re.Pattern[bytes], re.Pattern[bytes]]:
    """Compile the patterns on first use: prefixes, formats, and values of suspicious names."""
    known = b"|".join(b"(?P<%b>%b)" % (name.encode(), form) for name, form in FORMS.items())
    return re.compile(_START), re.compile(known), re.compile(_VALUE)


def kinds(data: bytes) -> list[str]:
    """Return the kinds of secrets that the content seems to hold, each once."""
    found: dict[str, None] = {}
    start, known, value = _patterns()
    if start.search(data) is not None:
        for match in known.finditer(data):
            found[str(match.lastgroup)] = None
    for match in value.finditer(data):
        if entropy(match[1]) >= ENTROPY:
            found["random_value"] = None
            break
    return list(found)


def entropy(text: bytes) -> float:
    """Return the entropy in bits per character."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())


class SecretScanner:
    """Scans the chunks that a commit writes; `found` has the kinds by path."""

    def __init__(self, scan: ScanMode) -> None:
        self.refuses = scan == "refuse"
        self.found: dict[str, list[str]] = {}

    def check(self, path: str, data: bytes | memoryview) -> None:
        """Scan the content of a path; raises in `refuse` mode."""
        seen = kinds(bytes(data))
        if not seen:
            return
        known = self.found.setdefault(path, [])
        known.extend(kind for kind in seen if kind not in known)
        if self.refuses:
            raise RametError(
                "secret_found", f"{path} seems to hold a secret ({', '.join(known)})",
                "remove it, withhold the file, or commit with scan='report'", {"path": path},
            )  # fmt: skip

    @property
    def findings(self) -> tuple[str, ...]:
        return tuple(f"{path} ({', '.join(sorted(found))})" for path, found in sorted(self.found.items()))


def parse_scan_mode(scan: str) -> ScanMode:
    found = next((one for one in SCAN_MODES if one == scan), None)
    if found is None:
        raise RametError("invalid_argument", f"unknown scan mode {scan!r}", f"use one of {', '.join(SCAN_MODES)}")
    return found
