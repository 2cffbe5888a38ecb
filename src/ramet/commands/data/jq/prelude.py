"""jq's built-in functions that are written in jq."""

from __future__ import annotations

import re
from typing import Final

from ramet.commands.data.jq.parser import Node, parse

PRELUDE: Final = """
def map(f): [.[] | f];
def map_values(f): .[] |= f;
def recurse(f; c): def again: ., (f | select(c) | again); again;
def recurse_down: recurse;
def values: select(. != null);
def nulls: select(. == null);
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def strings: select(type == "string");
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def scalars: select(type | . != "array" and . != "object");
def isfinite: type == "number" and (isinfinite | not);
def finites: select(isfinite);
def normals: select(isnormal);
def with_entries(f): to_entries | map(f) | from_entries;
def del(f): delpaths([path(f)]);
def paths: path(..) | select(length > 0);
def paths(f): path(.. | select(f)) | select(length > 0);
def leaf_paths: paths(scalars);
def first: .[0];
def last: .[-1];
def nth($n): .[$n];
def nth($n; f): if $n < 0 then error("nth doesn't support negative indices") else first(skip($n; f)) end;
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def combinations: if length == 0 then [] else .[0][] as $x | .[1:] | combinations as $rest | [$x] + $rest end;
def combinations(n): . as $all | [range(n) | $all] | combinations;
def _nwise($n): if length <= $n then . else .[:$n], (.[$n:] | _nwise($n)) end;
def isvalid(f): try (f | true) catch false;
def todate: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdate: fromdateiso8601;
def date: todate;
def dateadd(u; n): . + n;
def datesub(u; n): . - n;
def INDEX(rows; key): reduce rows as $row ({}; .[$row | key | tostring] |= $row);
def INDEX(key): INDEX(.[]; key);
def JOIN($table; key): [.[] | [., $table[key]]];
def JOIN($table; rows; key): rows | [., $table[key]];
def JOIN($table; rows; key; combine): rows | [., $table[key]] | combine;
def IN(xs): any(xs == .; .);
def IN(xs; ys): any(xs == ys; .);
"""
PRELUDE_NAMES: Final = [
    (found[1], 0 if not found[2] else found[2].count(";") + 1)
    for found in re.finditer(r"^def ([A-Za-z_]\w*)(?:\(([^)]*)\))?:", PRELUDE, re.MULTILINE)
]

_WORDS: Final = re.compile(r"[A-Za-z_]\w*").findall
_DEFINITIONS: Final[list[Node]] = parse(PRELUDE)[2]
_USES: Final[dict[str, set[str]]] = {}
"""The words in the definitions of each name."""
for _definition, _line in zip(_DEFINITIONS, PRELUDE.strip().splitlines(), strict=True):
    _USES.setdefault(_definition[1], set()).update(_WORDS(_line))


def definitions(program: str, imports: bool) -> list[Node]:
    """Those that a program may come to call: most need few of them, and each is made anew for every program. What is
    imported may call any."""
    if imports:
        return _DEFINITIONS
    wanted: set[str] = set()
    words = set(_WORDS(program))
    while found := (words & _USES.keys()) - wanted:
        wanted |= found
        words = set().union(*(_USES[name] for name in found))
    return [one for one in _DEFINITIONS if one[1] in wanted]
