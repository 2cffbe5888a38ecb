"""What curl and wget read and write alike in the headers of requests and answers."""

from __future__ import annotations

import base64
import re
from typing import Final

from ramet.core.paths import encode
from ramet.network.exchange import Exchange

FIXED: Final = frozenset(("host", "content-length", "transfer-encoding"))
"""Headers that no option sets: the host that was checked is the one that is named, and a body is as long as it is."""
PERSONAL: Final = frozenset(("authorization", "cookie"))
"""Headers of the command line that go to the first host only."""
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DISPOSITION: Final = re.compile(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', re.IGNORECASE)


def is_header(name: str, text: str) -> bool:
    """Whether it is one header, and nothing that ends it and begins another."""
    return bool(_NAME.fullmatch(name)) and not re.search(r"[\r\n\0]", text)


def basic(user: str, password: str) -> str:
    """The value of Authorization."""
    return "Basic " + base64.b64encode(encode(f"{user}:{password}")).decode()


def length_of(exchange: Exchange) -> int | None:
    """What the answer says of the size of its body."""
    said = exchange.header("content-length")
    return int(said) if said is not None and said.isascii() and said.isdecimal() else None


def attachment_name(exchange: Exchange) -> str:
    """The name that Content-Disposition gives; never a path, empty for none."""
    found = _DISPOSITION.search(exchange.header("content-disposition") or "")
    name = "" if found is None else (found[1] if found[1] is not None else found[2])
    name = name.replace("\\", "/").rpartition("/")[2].strip()
    return "" if name in (".", "..") else name
