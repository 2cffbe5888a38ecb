"""Groups of bits: by columns the same as bit by bit, and back again."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from ramet.commands.binary.base64 import CODECS
from ramet.commands.binary.bit_groups import regrouping


@given(st.binary(max_size=300))
def test_base32_is_that_of_the_standard(data: bytes) -> None:
    for name, encode in (("base32", base64.b32encode), ("base32hex", base64.b32hexencode)):
        text = CODECS[name].encode(data)
        assert text == encode(data)
        assert CODECS[name].decode(text) == data


@given(st.binary(max_size=100))
def test_base2_writes_the_bits_of_each_byte(data: bytes) -> None:
    high_first = "".join(f"{byte:08b}" for byte in data).encode()
    low_first = "".join(f"{byte:08b}"[::-1] for byte in data).encode()
    assert (CODECS["base2msbf"].encode(data), CODECS["base2lsbf"].encode(data)) == (high_first, low_first)
    assert CODECS["base2msbf"].decode(high_first) == CODECS["base2lsbf"].decode(low_first) == data


@given(st.binary(max_size=99).filter(lambda data: len(data) % 3 == 0))
def test_any_width_goes_there_and_back(data: bytes) -> None:
    alphabet = bytes(range(60, 124))
    text = regrouping(alphabet, 6, 3).encode(data)
    digits = int.from_bytes(data, "big")
    assert text == bytes(alphabet[digits >> 6 * place & 63] for place in range(len(data) // 3 * 4))[::-1]
    assert regrouping(alphabet, 6, 3).decode(text) == data
