"""Members that other programs write and ours does not: sparse files, incremental dumps, odd types."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.shell_runner import run_script

from ramet.text.tar_header import with_checksum

HOLES = ((0, 3), (1000, 4), (5000, 0))
"""Where the data of the file with holes lies; the last entry tells its size."""
DATA = b"abcdefg"
WHOLE = b"abc" + b"\0" * 997 + b"defg" + b"\0" * 3996


def _block(name: bytes, kind: bytes, size: int, fields: dict[int, bytes] | None = None) -> bytes:
    block = bytearray(512)
    plain = {0: name, 100: b"0000644\0", 108: b"0000000\0", 116: b"0000000\0", 124: b"%011o\0" % size}
    for at, text in {**plain, 136: b"%011o\0" % 0, 156: kind, 257: b"ustar  \0", **(fields or {})}.items():
        block[at : at + len(text)] = text
    return with_checksum(bytes(block))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 512)


def _pax(pairs: list[tuple[str, str]], stored: bytes) -> bytes:
    text = b""
    for key, value in pairs:
        body = f" {key}={value}\n".encode()
        size = len(body) + 1
        size = len(body) + len(str(size + len(str(size)) - 1))
        text += str(size).encode() + body
    return _block(b"x", b"x", len(text)) + _padded(text) + _block(b"f", b"0", len(stored)) + _padded(stored)


def _old() -> bytes:
    entries = b"".join(b"%011o\0%011o\0" % entry for entry in HOLES)
    return _block(b"f", b"S", len(DATA), {386: entries, 483: b"%011o\0" % 5000}) + _padded(DATA)


def _old_extended() -> bytes:
    pieces = [(at * 100, 1) for at in range(30)]
    entries = [b"%011o\0%011o\0" % piece for piece in pieces]
    head = _block(b"f", b"S", 30, {386: b"".join(entries[:4]), 482: b"\1", 483: b"%011o\0" % 5000})
    more = (b"".join(entries[4:25]) + b"\1").ljust(512, b"\0")
    last = b"".join(entries[25:]).ljust(512, b"\0")
    return head + more + last + _padded(b"x" * 30)


def _keywords() -> bytes:
    pairs = [("GNU.sparse.size", "5000"), ("GNU.sparse.numblocks", "3")]
    for where, size in HOLES:
        pairs += [("GNU.sparse.offset", str(where)), ("GNU.sparse.numbytes", str(size))]
    return _pax(pairs, DATA)


def _listed() -> bytes:
    numbers = ",".join(str(number) for entry in HOLES for number in entry)
    named = [("GNU.sparse.size", "5000"), ("GNU.sparse.numblocks", "3"), ("GNU.sparse.name", "f")]
    return _pax([*named, ("GNU.sparse.map", numbers)], DATA)


def _before_data() -> bytes:
    numbers = "".join(f"{number}\n" for number in (len(HOLES), *(number for entry in HOLES for number in entry)))
    pairs = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "5000")]
    return _pax([*pairs, ("GNU.sparse.name", "f")], _padded(numbers.encode()) + DATA)


def _run(script: str, archive: bytes) -> tuple[str, str, int]:
    out, err, status = asyncio.run(run_script(script, {"a.tar": archive + b"\0" * 1024}))
    return out.decode(), err.decode(), status


@pytest.mark.parametrize(
    ("archive", "whole"),
    [
        (_old(), WHOLE),
        (_old_extended(), (b"x" + b"\0" * 99) * 30 + b"\0" * 2000),
        (_keywords(), WHOLE),
        (_listed(), WHOLE),
        (_before_data(), WHOLE),
    ],
    ids=["old", "old, extended", "0.0", "0.1", "1.0"],
)
def test_holes_are_filled(archive: bytes, whole: bytes) -> None:
    after = _block(b"g", b"0", 2) + _padded(b"g\n")
    out, err, status = asyncio.run(run_script("tar xf a.tar; cat f; cat g", {"a.tar": archive + after + b"\0" * 1024}))
    assert (out, err, status) == (whole + b"g\n", b"", 0)
    out, err, status = asyncio.run(run_script("tar tvf a.tar", {"a.tar": archive + b"\0" * 1024}))
    assert out.split()[2] == b"5000"


def test_what_is_rewritten_has_no_holes() -> None:
    archive = _old() + _block(b"g", b"0", 2) + _padded(b"g\n")
    assert _run("tar --delete -f a.tar g; tar xf a.tar; wc -c < f", archive) == ("5000\n", "", 0)


@pytest.mark.parametrize("size", [2, 999])
def test_a_map_that_makes_no_sense_is_refused(size: int) -> None:
    archive = _block(b"f", b"S", 7, {386: b"%011o\0%011o\0" % (0, 7), 483: b"%011o\0" % size})
    archive = archive if size == 2 else _block(b"f", b"S", 3, {386: b"%011o\0%011o\0" % (0, 7), 483: b"%011o\0" % 999})
    out, err, status = _run("tar xf a.tar", archive + _padded(b"1234567"))
    assert (out, status) == ("", 2)
    assert "invalid sparse archive member" in err


def test_holes_that_do_not_fit_into_memory_are_not_rewritten() -> None:
    large = _block(b"f", b"S", 3, {386: b"%011o\0%011o\0" % (0, 3), 483: b"\x80" + (1 << 40).to_bytes(11, "big")})
    archive = large + _padded(b"abc") + _block(b"g", b"0", 2) + _padded(b"g\n")
    out, err, status = _run("tar --delete -f a.tar g; echo $?; tar tf a.tar; tar xf a.tar g; cat g", archive)
    assert (out, status) == ("2\nf\ng\ng\n", 0)
    assert err.startswith("tar: f: Cannot rewrite: its holes are too large\n")


@pytest.mark.parametrize(
    ("change", "told"), [("", ""), ("printf q | dd of=f bs=1 seek=1002 conv=notrunc status=none", "f: ")]
)
def test_files_are_compared_piece_by_piece(change: str, told: str) -> None:
    script = f"tar xf a.tar; {change or ':'}; touch -d @0 f; tar df a.tar"
    out, err, status = _run(script, _old())
    assert (out, err, status) == (f"{told}Contents differ\n" if told else "", "", 1 if told else 0)


def test_the_directories_of_an_incremental_dump_are_plain_directories() -> None:
    dump = b"Dnew\0Nkept\0R../../etc\0Td/stolen\0\0"
    times = {345: b"15276624250\0" + b"15276624250\0"}  # not the beginning of a name
    archive = _block(b"d/", b"D", len(dump), times) + _padded(dump) + _block(b"d/new/", b"D", 4) + _padded(b"Nx\0\0")
    assert _run("mkdir -p d/old; tar -xvf a.tar; find d | sort", archive) == ("d/\nd/new/\nd\nd/new\nd/old\n", "", 0)


def test_an_unknown_kind_is_a_plain_file() -> None:
    out, err, status = _run("tar xf a.tar; cat f", _block(b"f", b"q", 2) + _padded(b"x\n"))
    assert (out, status) == ("x\n", 0)
    assert err == "tar: f: Unknown file type 'q', extracted as normal file\n"
