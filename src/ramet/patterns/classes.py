"""Character classes beyond ASCII, as glibc defines them where Unicode categories differ.

Ranges of code points in hexadecimal. Letters are what has the property Alphabetic and all digits that are not those of
ASCII; what is printed and is neither letter, digit nor blank is punctuation, marks and numbers included.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cache

ALPHA = """
345 5b0-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-657 659-669 670 6d6-6dc 6e1-6e4 6e7-6e8 6ed 6f0-6f9 711 730-73f
7a6-7b0 7c0-7c9 816-817 81b-823 825-827 829-82c 8d4-8df 8e3-8e9 8f0-903 93a-93b 93e-94c 94e-94f 955-957 962-963
966-96f 981-983 9be-9c4 9c7-9c8 9cb-9cc 9d7 9e2-9e3 9e6-9ef a01-a03 a3e-a42 a47-a48 a4b-a4c a51 a66-a71 a75 a81-a83
abe-ac5 ac7-ac9 acb-acc ae2-ae3 ae6-aef afa-afc b01-b03 b3e-b44 b47-b48 b4b-b4c b56-b57 b62-b63 b66-b6f b82 bbe-bc2
bc6-bc8 bca-bcc bd7 be6-bef c00-c03 c3e-c44 c46-c48 c4a-c4c c55-c56 c62-c63 c66-c6f c81-c83 cbe-cc4 cc6-cc8 cca-ccc
cd5-cd6 ce2-ce3 ce6-cef d00-d03 d3e-d44 d46-d48 d4a-d4c d57 d62-d63 d66-d6f d81-d83 dcf-dd4 dd6 dd8-ddf de6-def
df2-df3 e31 e34-e3a e4d e50-e59 eb1 eb4-eb9 ebb-ebc ecd ed0-ed9 f20-f29 f71-f81 f8d-f97 f99-fbc 102b-1036 1038
103b-103e 1040-1049 1056-1059 105e-1060 1062-1064 1067-106d 1071-1074 1082-108d 108f-109d 1712-1713 1732-1733
1752-1753 1772-1773 17b6-17c8 17e0-17e9 1810-1819 1885-1886 18a9 1920-192b 1930-1938 1946-194f 19d0-19d9 1a17-1a1b
1a55-1a5e 1a61-1a74 1a80-1a89 1a90-1a99 1abf-1ac0 1acc-1ace 1b00-1b04 1b35-1b43 1b50-1b59 1b80-1b82 1ba1-1ba9
1bac-1bad 1bb0-1bb9 1be7-1bf1 1c24-1c36 1c40-1c49 1c50-1c59 1de7-1df4 24b6-24e9 2de0-2dff a620-a629 a674-a67b
a69e-a69f a802 a80b a823-a827 a880-a881 a8b4-a8c3 a8c5 a8d0-a8d9 a8ff-a909 a926-a92a a947-a952 a980-a983 a9b4-a9bf
a9d0-a9d9 a9e5 a9f0-a9f9 aa29-aa36 aa43 aa4c-aa4d aa50-aa59 aa7b-aa7d aab0 aab2-aab4 aab7-aab8 aabe aaeb-aaef aaf5
abe3-abea abf0-abf9 fb1e ff10-ff19 10376-1037a 104a0-104a9 10a01-10a03 10a05-10a06 10a0c-10a0f 10d24-10d27 10d30-10d39
10eab-10eac 11000-11002 11038-11045 11066-1106f 11073-11074 11082 110b0-110b8 110c2 110f0-110f9 11100-11102
11127-11132 11136-1113f 11145-11146 11180-11182 111b3-111bf 111ce-111d9 1122c-11234 11237 1123e 112df-112e8
112f0-112f9 11300-11303 1133e-11344 11347-11348 1134b-1134c 11357 11362-11363 11435-11441 11443-11445 11450-11459
114b0-114c1 114d0-114d9 115af-115b5 115b8-115be 115dc-115dd 11630-1163e 11640 11650-11659 116ab-116b5 116c0-116c9
1171d-1172a 11730-11739 1182c-11838 118e0-118e9 11930-11935 11937-11938 1193b-1193c 11940 11942 11950-11959
119d1-119d7 119da-119df 119e4 11a01-11a0a 11a35-11a39 11a3b-11a3e 11a51-11a5b 11a8a-11a97 11c2f-11c36 11c38-11c3e
11c50-11c59 11c92-11ca7 11ca9-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d41 11d43 11d47 11d50-11d59 11d8a-11d8e
11d90-11d91 11d93-11d96 11da0-11da9 11ef3-11ef6 16a60-16a69 16ac0-16ac9 16b50-16b59 16f4f 16f51-16f87 16f8f-16f92
16ff0-16ff1 1bc9e 1d7ce-1d7ff 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e140-1e149 1e2f0-1e2f9
1e947 1e950-1e959 1f130-1f149 1f150-1f169 1f170-1f189 1fbf0-1fbf9
"""
"""In addition to the categories L and Nl: vowel signs, digits and circled letters."""
UPPER = """
1c5 1c8 1cb 1f2 1f88-1f8f 1f98-1f9f 1fa8-1faf 1fbc 1fcc 1ffc 2160-216f 24b6-24cf 1f130-1f149 1f150-1f169 1f170-1f189
"""
"""In addition to Lu: title-case letters, Roman numerals, circled letters."""
LOWER = """
aa ba 1c5 1c8 1cb 1f2 2b0-2b8 2c0-2c1 2e0-2e4 345 37a 1d2c-1d6a 1d78 1d9b-1dbf 2071 207f 2090-209c 2170-217f 24d0-24e9
2c7c-2c7d a69c-a69d a770 a7f8-a7f9 ab5c-ab5f 10780 10783-10785 10787-107b0 107b2-107ba
"""
"""In addition to Ll: modifier letters, Roman numerals, and title-case letters with their own capital."""
PUNCT = """
a0 300-344 346-36f 483-489 591-5af 658 6df-6e0 6ea-6ec 740-74a 7eb-7f3 7fd 818-819 82d 859-85b 898-89f 8ca-8d3 8e0-8e1
8ea-8ef 93c 94d 951-954 9bc 9cd 9fe a3c a4d abc acd afd-aff b3c b4d b55 bcd c04 c3c c4d cbc ccd d3b-d3c d4d dca
e47-e4c e4e eba ec8-ecc f18-f19 f35 f37 f39 f3e-f3f f82-f84 f86-f87 fc6 1037 1039-103a 135d-135f 1714-1715 1734
17b4-17b5 17c9-17d3 17dd 180b-180d 180f 1939-193b 1a60 1a75-1a7c 1a7f 1ab0-1abe 1ac1-1acb 1b34 1b44 1b6b-1b73
1baa-1bab 1be6 1bf2-1bf3 1c37 1cd0-1cd2 1cd4-1ce8 1ced 1cf4 1cf7-1cf9 1dc0-1de6 1df5-1dff 2007 202f 20d0-20f0
2cef-2cf1 2d7f 302a-302f 3099-309a a66f-a672 a67c-a67d a6f0-a6f1 a806 a82c a8c4 a8e0-a8f1 a92b-a92d a953 a9b3 a9c0
aabf aac1 aaf6 abec-abed fe00-fe0f fe20-fe2f 101fd 102e0 10a38-10a3a 10a3f 10ae5-10ae6 10f46-10f50 10f82-10f85 11046
11070 1107f-11081 110b9-110ba 11133-11134 11173 111c0 111c9-111cc 11235-11236 112e9-112ea 1133b-1133c 1134d
11366-1136c 11370-11374 11442 11446 1145e 114c2-114c3 115bf-115c0 1163f 116b6-116b7 1172b 11839-1183a 1193d-1193e
11943 119e0 11a33-11a34 11a47 11a98-11a99 11c3f 11d42 11d44-11d45 11d97 16af0-16af4 16b30-16b36 16fe4 1bc9d
1cf00-1cf2d 1cf30-1cf46 1d165-1d169 1d16d-1d172 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1da00-1da36
1da3b-1da6c 1da75 1da84 1da9b-1da9f 1daa1-1daaf 1e130-1e136 1e2ae 1e2ec-1e2ef 1e8d0-1e8d6 1e944-1e946 1e948-1e94a
e0100-e01ef
"""
"""In addition to P, S, No, Cf and Co: marks that belong to no letter, and no-break spaces."""
SPACE = "1680 2000-2006 2008-200a 2028-2029 205f 3000"
BLANK = "1680 2000-2006 2008-200a 205f 3000"
CNTRL = "80-9f 2028-2029"
GRAPH = "a0 2007 202f"
_EXTRA = {
    "alpha": ALPHA, "alnum": ALPHA, "upper": UPPER, "lower": LOWER, "punct": PUNCT, "space": SPACE, "blank": BLANK,
    "cntrl": CNTRL, "graph": GRAPH,
}  # fmt: skip


@cache
def extra(name: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges that a class has in addition to its categories."""
    found: list[tuple[int, int]] = []
    for text in _EXTRA.get(name, "").split():
        low, _, high = text.partition("-")
        found.append((int(low, 16), int(high or low, 16)))
    return tuple(found)


def is_word(char: str) -> bool:
    """Whether a character is a letter, a digit or an underscore."""
    if char.isascii():
        return char == "_" or char.isalnum()
    kind = unicodedata.category(char)
    if kind[0] == "L" or kind == "Nl":
        return True
    ranges = extra("alpha")
    at = bisect_right(ranges, (ord(char), 0x110000)) - 1
    return at >= 0 and ord(char) <= ranges[at][1]


_LONE = (
    0xB5, 0x131, 0x17F, 0x1C5, 0x1C8, 0x1CB, 0x1F2, 0x345, 0x3C2, 0x3D0, 0x3D1, 0x3D5, 0x3D6, 0x3F0, 0x3F1, 0x3F5,
    0x1E9B, 0x1FBE,
)  # fmt: skip
"""Small letters whose capital has another small one."""


def upper(code: int) -> int:
    """The one capital of a letter, or the letter."""
    char = chr(code)
    found = char.upper()
    if len(found) > 1:
        found = char.title()  # of letters that become two, this may be the one that stands for both
    return ord(found) if len(found) == 1 else code


def alike(code: int) -> frozenset[int]:
    """The characters that one stands for where case does not matter: those with the same capital."""
    capital = upper(code)
    small = chr(capital).lower()
    near = {code, capital, *_LONE} | ({ord(small)} if len(small) == 1 else set())
    return frozenset(other for other in near if upper(other) == capital)
