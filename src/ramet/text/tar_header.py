"""Tar headers as bytes: GNU headers, checksums, numbers, names and pax records.

- Damaged fields raise ValueError; the callers say what that means for an archive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

BLOCK: Final = 512
RECORD: Final = 20 * BLOCK
"""Bytes to which an archive is filled up."""
_LONG_NAME: Final = b"././@LongLink"
_OWNER: Final = b"0000000\0" * 2
_MAGIC_AND_REST: Final = b"ustar  \0" + bytes(32 + 32 + 16 + 155 + 12)


def gnu_header(name: bytes, size: int, kind: bytes, mode: int, mtime: int, target: bytes = b"") -> bytes:
    """Return the header block of a member that belongs to root; names longer than 100 bytes need `long_name`."""
    head = b"".join(
        (
            name.ljust(100, b"\0"),
            b"%07o\0" % (mode & 0o7777),
            _OWNER,
            b"%011o\0" % size if size < 1 << 33 else b"\x80" + size.to_bytes(11, "big"),
            b"%011o\0" % min(max(mtime, 0), (1 << 33) - 1),
            b"        ",
            kind,
            target.ljust(100, b"\0"),
            _MAGIC_AND_REST,
        )
    )
    return head[:148] + b"%06o\0 " % sum(head) + head[156:]


def long_name(text: bytes, kind: bytes) -> bytes:
    """Return the blocks that give the next member a long name (`L`) or link target (`K`)."""
    return gnu_header(_LONG_NAME, len(text) + 1, kind, 0, 0) + text + bytes(1 + -(len(text) + 1) % BLOCK)


def with_checksum(block: bytes) -> bytes:
    """Return a header block with its checksum, which counts itself as blanks."""
    total = sum(block) - sum(block[148:156]) + 8 * 32
    return block[:148] + b"%06o\0 " % total + block[156:]


def has_checksum(block: bytes) -> bool:
    """Return whether the checksum of a header block is right."""
    try:
        wanted = int(block[148:156].strip(b" \0") or b"x", 8)
    except ValueError:
        return False
    return sum(block[:148]) + 256 + sum(block[156:]) == wanted


def number(field: bytes) -> int:
    """Parse a number: octal digits, or base 256 if the first bit is set."""
    if field[:1] >= b"\x80":
        if field[0] != 0x80:
            raise ValueError("number out of range")
        return int.from_bytes(field[1:], "big")
    value = int(field.strip(b" \0") or b"0", 8)
    if value < 0:
        raise ValueError("number out of range")
    return value


def name(block: bytes) -> bytes:
    """Return the name in a header block, with the prefix of a ustar header."""
    found = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0":
        prefix = block[345:500].split(b"\0", 1)[0]
        if prefix:
            return prefix + b"/" + found
    return found


def pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keywords and values of an extended header."""
    at = 0
    while at < len(data):
        space = data.find(b" ", at)
        length = data[at:space]
        if space < 0 or not length.isdigit() or int(length) < 4:
            raise ValueError("damaged extended header")
        key, _, value = data[space + 1 : at + int(length) - 1].partition(b"=")
        yield key, value
        at += int(length)
