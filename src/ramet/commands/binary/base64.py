"""base64, base32 and basenc: encode and decode blocks of whole groups."""

from __future__ import annotations

import base64 as codec
import binascii
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ramet.commands.binary.bit_groups import regrouping
from ramet.commands.framework.command import Command, UsageError, called, choose, flag, quote, value
from ramet.commands.framework.inputs import PART, parse_count
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.streams import Reader


@dataclass(frozen=True, slots=True)
class EncodeOptions:
    decode: bool = flag("-d", "-D", "--decode", help="decode data")
    ignore: bool = flag("-i", "--ignore-garbage", help="when decoding, ignore non-alphabet characters")
    wrap: str = value(
        "-w",
        "--wrap",
        metavar="COLS",
        default="76",
        help="wrap encoded lines after COLS characters; 0 disables wrapping",
    )


@dataclass(frozen=True, slots=True)
class BasencOptions:
    decode: bool = flag("-d", "-D", "--decode", help="decode data")
    ignore: bool = flag("-i", "--ignore-garbage", help="when decoding, ignore non-alphabet characters")
    wrap: str = value(
        "-w",
        "--wrap",
        metavar="COLS",
        default="76",
        help="wrap encoded lines after COLS characters; 0 disables wrapping",
    )
    kind: str | None = choose(
        {
            "--base64": "base64",
            "--base64url": "base64url",
            "--base32": "base32",
            "--base32hex": "base32hex",
            "--base16": "base16",
            "--base2msbf": "base2msbf",
            "--base2lsbf": "base2lsbf",
            "--z85": "z85",
        },
        help="which encoding",
    )


_B64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _to_z85(data: bytes) -> bytes:
    if len(data) % 4:
        raise UsageError("invalid input (length must be multiple of 4 characters)", hint=False)
    return codec.b85encode(data).translate(bytes.maketrans(codec._b85alphabet, _Z85))  # type: ignore[attr-defined]


def _from_z85(data: bytes) -> bytes:
    if len(data) % 5:
        raise ValueError
    return codec.b85decode(data.translate(bytes.maketrans(_Z85, codec._b85alphabet)))  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class _Codec:
    encode: Callable[[bytes], bytes]
    decode: Callable[[bytes], bytes]
    group: int
    """Bytes that encode without padding."""
    text: int
    """Characters such a group becomes."""
    alphabet: bytes
    refused: bytes = b""
    """Characters that invalidate the rest of the input, as in the original."""


def _base32(alphabet: bytes, encode: Callable[[bytes], bytes], decode: Callable[[bytes], bytes]) -> _Codec:
    """Make a base32 codec: whole groups by columns, the padded end by the library."""
    groups = regrouping(alphabet, 5, 5)

    def to_text(data: bytes) -> bytes:
        whole = len(data) - len(data) % 5
        return groups.encode(data[:whole]) + encode(data[whole:])

    def to_bytes(text: bytes) -> bytes:
        whole = max(0, (len(text) - 1) // 8 * 8)
        if text[:whole].translate(None, alphabet):
            raise ValueError
        return groups.decode(text[:whole]) + decode(text[whole:])

    return _Codec(to_text, to_bytes, 5, 8, alphabet + b"=")


def _base2(order: bytes) -> _Codec:
    """Make a base2 codec; `order` maps each byte to the written order of its bits."""
    groups = regrouping(b"01", 1, 1)

    def to_bytes(text: bytes) -> bytes:
        if len(text) % 8 or text.translate(None, b"01"):
            raise ValueError
        return groups.decode(text).translate(order)

    return _Codec(lambda data: groups.encode(data.translate(order)), to_bytes, 1, 8, b"01")


_FROM_URL = bytes.maketrans(b"-_+/", b"+/--")
CODECS = {
    "base64": _Codec(binascii.b2a_base64, lambda d: binascii.a2b_base64(d, strict_mode=True), 3, 4, _B64 + b"+/="),
    "base64url": _Codec(
        codec.urlsafe_b64encode,
        lambda d: binascii.a2b_base64(d.translate(_FROM_URL), strict_mode=True),
        3,
        4,
        _B64 + b"-_=",
        refused=b"+/",
    ),
    "base32": _base32(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", codec.b32encode, codec.b32decode),
    "base32hex": _base32(b"0123456789ABCDEFGHIJKLMNOPQRSTUV", codec.b32hexencode, codec.b32hexdecode),
    "base16": _Codec(codec.b16encode, codec.b16decode, 1, 2, b"0123456789ABCDEF"),
    "base2msbf": _base2(bytes(range(256))),
    "base2lsbf": _base2(bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))),
    "z85": _Codec(_to_z85, _from_z85, 4, 5, _Z85),
}


async def base64(proc: Proc, o: EncodeOptions, operands: list[str]) -> int:
    return await _run(proc, o, operands, CODECS["base64"])


async def base32(proc: Proc, o: EncodeOptions, operands: list[str]) -> int:
    return await _run(proc, o, operands, CODECS["base32"])


async def basenc(proc: Proc, o: BasencOptions, operands: list[str]) -> int:
    if o.kind is None:
        raise UsageError("missing encoding type")
    return await _run(proc, o, operands, CODECS[o.kind])


async def _run(proc: Proc, o: EncodeOptions | BasencOptions, operands: list[str], how: _Codec) -> int:
    wrap = parse_count(o.wrap, "wrap size")
    if len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1])}")
    word = operands[0] if operands else "-"
    try:
        reader = await proc.open(word)
    except OSError as error:
        where = "read error" if isinstance(error, IsADirectoryError) else called(word)
        proc.complain(f"{where}: {reason(error)}")
        return 1
    try:
        if o.decode:
            return await _decode(proc, reader, how, o.ignore)
        await _encode(proc, reader, how, wrap)
    finally:
        await proc.close(reader)
    return 0


async def _encode(proc: Proc, reader: Reader, how: _Codec, wrap: int) -> None:
    rest, line = b"", b""
    started = False
    # A block that is whole lines of whole groups needs no carry.
    while block := await reader.read(PART):
        data = rest + block
        cut = len(data) - len(data) % how.group
        data, rest = data[:cut], data[cut:]
        text = line + how.encode(data).rstrip(b"\n")
        started = started or bool(text)
        if not wrap:
            await proc.emit(text)
            await proc.budget.yield_turn()
            continue
        whole = len(text) - len(text) % wrap
        await proc.emit(b"".join([text[i : i + wrap] + b"\n" for i in range(0, whole, wrap)]))
        line = text[whole:]
        await proc.budget.yield_turn()
    if rest:
        line += how.encode(rest).rstrip(b"\n")
    if not wrap:
        await proc.emit(line)
        return
    await proc.emit(b"".join([line[i : i + wrap] + b"\n" for i in range(0, len(line), wrap)]))


async def _decode(proc: Proc, reader: Reader, how: _Codec, ignore: bool) -> int:
    """Decode the valid part of the input; report an error after it."""
    drop = bytes(set(range(256)) - set(how.alphabet)) if ignore else b"\n"
    rest = b""
    while block := await reader.read(PART):
        data = rest + block.translate(None, drop)
        cut = len(data) - len(data) % how.text
        data, rest = data[:cut], data[cut:]
        good, whole = _good_part(data, how)
        await proc.emit(good)
        if not whole:
            proc.complain("invalid input")
            return 1
        await proc.budget.yield_turn()
    good, whole = _good_part(rest, how)
    await proc.emit(good)
    if not whole:
        proc.complain("invalid input")
        return 1
    return 0


def _good_part(data: bytes, how: _Codec) -> tuple[bytes, bool]:
    """Decode the valid prefix of a text; return it and whether it is complete."""
    if any(char in data for char in how.refused):
        return b"", False
    with suppress(ValueError):
        if b"====" not in data:
            return how.decode(data), True
    out: list[bytes] = []
    for i in range(0, len(data), how.text):
        group = data[i : i + how.text]
        try:
            if group == b"====":
                raise ValueError
            out.append(how.decode(group))
        except ValueError:
            if how.text == 4 and how.group == 3:
                out.append(_broken_group(group, how))
            return b"".join(out), False
        # Padding inside is legal: another encoding follows.
    return b"".join(out), True


def _broken_group(group: bytes, how: _Codec) -> bytes:
    """Decode the valid characters at the start of a base64 group."""
    letters = how.alphabet.removesuffix(b"=")
    good = group[: next((k for k, c in enumerate(group) if c not in letters), len(group))]
    return how.decode(good + b"=" * (4 - len(good))) if len(good) in (2, 3) else b""


_USAGE = "[OPTION]... [FILE]"
COMMANDS = [
    Command(
        "base64",
        base64,
        EncodeOptions,
        summary="Base64 encode or decode FILE, or standard input.",
        usage=_USAGE,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("read error: {}", fatal=True),
    ),
    Command(
        "base32",
        base32,
        EncodeOptions,
        summary="Base32 encode or decode FILE, or standard input.",
        usage=_USAGE,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("read error: {}", fatal=True),
    ),
    Command(
        "basenc",
        basenc,
        BasencOptions,
        summary="Encode or decode FILE, or standard input, in one of several bases.",
        usage=_USAGE,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("read error: {}", fatal=True),
    ),
]
