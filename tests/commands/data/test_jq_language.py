"""jq beyond what the recorded version knows: newer functions, numbers, limits, and programs that would never end."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.support.shell_runner import run_script

CASES = [
    ("pick(.a)", {"a": 1, "b": 2}, [{"a": 1}]),
    ('[strptime("%H:%M"), (strptime("%H:%M") | mktime)]', "10:20", [[[1900, 0, 0, 10, 20, 0, 8, 367], -2209038000]]),
    ('strptime("%b %Y")', "Mar 2020", [[2020, 2, 0, 0, 0, 0, 6, 59]]),
    ('strptime("%a")', "Tue", [[1900, 0, 0, 0, 0, 0, 2, 367]]),
    ("try max_by(.a) catch .", {}, ["object ({}) and array ([]) cannot be iterated over"]),
    ("try min catch .", {}, ["object ({}) and object ({}) cannot be iterated over"]),
    ('try (.[0:1] = "x") catch .', "abc", ["Cannot update string slices"]),
    ("[_nwise(2)]", [1, 2, 3], [[[1, 2], [3]]]),
    ("pick(.a.b)", {"a": {"b": 1, "c": 2}}, [{"a": {"b": 1}}]),
    ("toarray", 1, [[1]]),
    ('"a" as $key | {$key: 123, b: 2, $key}', None, [{"a": 123, "b": 2, "key": "a"}]),
    (
        '"a" as $if | {$if: 1|2}, try ({} as $x | {$x: 1}) catch .',
        None,
        [{"a": 2}, "Cannot use object ({}) as object key"],
    ),
    ("abs", -5, [5]),
    ("map(try abs catch .)", [-1.5, "a", None, []], [[1.5, "a", "null (null) cannot be negated", []]]),
    ("trim, ltrim, rtrim", " x ", ["x", "x ", " x"]),
    ('[splits("a+"; null)]', "xaay", [["x", "y"]]),
    ("have_literal_numbers", None, [True]),
    ("[limit(0; 1, 2)]", None, [[]]),
    ("@base32d", "MFRGG===", ["abc"]),
    ('ltrimstr("a")', "aab", ["ab"]),
    ("[.[] | tojson]", [1, 1.5, 100000000000000000000], [["1", "1.5", "100000000000000000000"]]),
    ("[1e17, 1e-5, 3.0, 1e1000 | . + 0]", None, [[1e17, 1e-05, 3, 1.7976931348623157e308]]),
    ("if . then 1 end", None, [None]),
    ("try error(null) catch .", None, [None]),
    ("[.[] as {a: $x} ?// [$x] | $x]", [{"a": 1}, [2]], [[1, 2]]),
    ("(.[] | select(. >= 2)) |= empty", [1, 5, 3, 0, 7], [[1, 0]]),
    ('getpath(["a", "b"])', None, [None]),
    ('[gsub("(?<d>.)"; "<\\(.d)>", "-")]', "ab", [["<a><b>", "--"]]),
    ("[range(3)] | .[1:] = []", None, [[0]]),
    ("def f: if . > 100000 then . else . + 1 | f end; f", 0, [100001]),
    ("[recurse(if . < 2000 then . + 1 else empty end)] | length", 0, [2001]),
    ("reduce range(1000) as $i (null; .[$i] = $i) | length", None, [1000]),
    ("last(range(100000))", None, [99999]),
    ('splits(", ")', "a, b", ["a", "b"]),
    ("ascii", 65, ["A"]),
    ('error("x")?', None, []),
    ('.a["b"].c?', {"a": {"b": {"c": 1}}}, [1]),
    ("[.[] | (1 / .)?]", [1, 0], [[1]]),
    ("input_line_number", 1, [1]),
    ("$__loc__", None, [{"file": "<top-level>", "line": 1}]),
    ("add(.[] | .a)", [{"a": 1}, {"a": 2}], [3]),
    ('getpath(["a", 0]) = 5', None, [{"a": [5]}]),
    ("to_entries", {"a": 1}, [[{"key": "a", "value": 1}]]),
    ("tojson | fromjson", {"a": [1, "é"]}, [{"a": [1, "é"]}]),
    ('[paths(type == "number")]', {"a": [1]}, [[["a", 0]]]),
    ("limit(3; repeat(1))", None, [1, 1, 1]),
    ('dateadd("seconds"; 10)', 5, [15]),
    ('try (.a.b |= error("x")) catch .', None, ["x"]),
    ('(.a |= error("x"))?, 5', None, [5]),
    ('join(",")', {"a": 0, "c": "x"}, ["0,x"]),
    ('has("a"), has(0)', None, [False, False]),
    ("try transpose catch .", [1, 2], ["Cannot index number with number"]),
    ("transpose", [None, [1], [2, 3]], [[[None, 1, 2], [None, None, 3]]]),
    ("transpose", {"a": [1], "b": [2, 3]}, [[[1, 2], [None, 3]]]),
    ("transpose", {}, [[]]),
    ("try sort_by(.b) catch .", "a", ['Cannot iterate over string ("a")']),
    ("try min_by(.) catch .", {"a": 1}, ['object ({"a":1}) and array ([[1]]) cannot be iterated over']),
    ('try delpaths([[0, "a"]]) catch .', [1], ["Cannot delete fields from number"]),
    ('try delpaths([["a"]]) catch .', [1], ["Cannot delete string element of array"]),
    ("try (. % 1) catch .", [], ["array ([]) and number (1) cannot be divided (remainder)"]),
    ("try test(1) catch .", "a", ["number not a string or array"]),
    ("try test([]) catch .", "a", ["array not a string or array"]),
    (
        "try splits(1) catch ., try scan([1]) catch .",
        "a",
        ["number (1) is not a string", "array ([1]) is not a string"],
    ),
    ('try sub(1; "") catch ., sub("a"; null)', "xay", ["number (1) is not a string", "xy"]),
    ("try .[.] catch ., try index([1]) catch .", None, ["Cannot index null with null", "Cannot index null with array"]),
    ("try unique catch .", 1, ["Cannot iterate over number (1)"]),
    ("try unique catch .", {}, ["object ({}) and array ([]) cannot be sorted, as they are not both arrays"]),
    (".[-1.2], .[1.7]", [1, 2, 3], [3, 2]),
    ("@base64d", "YQ=a", ["a"]),
    ("try path([.]) catch .", "a" * 40, ['Invalid path expression with result ["' + "a" * 24 + "..."]),
    (
        "[tostream]",
        {"a": [1, {"b": []}], "c": {}},
        [
            [
                [["a", 0], 1],
                [["a", 1, "b"], []],
                [["a", 1, "b"]],
                [["a", 1]],
                [["c"], {}],
                [["c"]],
            ]
        ],
    ),
    ('"2015-03-05T23:51:47Z" | strptime("%Y-%m-%dT%H:%M:%SZ") | mktime', None, [1425599507]),
]


@pytest.mark.parametrize(("program", "value", "results"), CASES)
def test_program(program: str, value: object, results: list[object]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    files = {"program.jq": program.encode(), "input.json": text.encode() + b"\n"}
    out, err, status = asyncio.run(run_script("jq -c -f program.jq input.json", files))
    assert (err, status) == (b"", 0)
    assert [json.loads(line) for line in out.decode().splitlines()] == results


FAILURES = [
    (".a", "[1]", 5, b'Cannot index array with string "a"'),
    (".[]", "null", 5, b"Cannot iterate over null (null)"),
    ('1 + "a"', "null", 5, b'number (1) and string ("a") cannot be added'),
    ("(bsearch({x: 1})) |= 1", '[{"x":0},{"x":1}]', 5, b"Invalid path expression with result 1"),
    ("path(1)", "5", 5, b"Invalid path expression with result 1"),
    ("nosuch", "null", 3, b"nosuch/0 is not defined"),
    ("$nosuch", "null", 3, b"$nosuch is not defined"),
    ("{", "null", 3, b"syntax error"),
    (".", "[1,", 5, b"Unfinished JSON term"),
    ('test("(")', '"a"', 5, b"Regex failure: end pattern with unmatched parenthesis"),
    ("def f: 1 + f; f", "null", 5, b"nested too deeply"),
]


@pytest.mark.parametrize(("program", "text", "status", "message"), FAILURES)
def test_failure(program: str, text: str, status: int, message: bytes) -> None:
    files = {"program.jq": program.encode(), "input.json": text.encode()}
    out, err, found = asyncio.run(run_script("jq -c -f program.jq input.json", files))
    assert (out, found) == (b"", status)
    assert message in err


EXACT = [
    (".", "1.0 1.50 1e2 1e-7 0.00001 -0.0 01 +1 .5 1.", "1.0|1.50|1E+2|1E-7|0.00001|-0.0|1|1|0.5|1"),
    (
        ".",
        "[3.14159265358979323846,1e1000,nan,-Infinity]",
        "[3.14159265358979323846,1E+1000,null,-1.7976931348623157e+308]",
    ),
    (".[]", "[1E1234567890,-NaN]", "1.7976931348623157e+308|null"),
    ("try fromjson catch .", '"nan1"', "\"Invalid literal at EOF at line 1, column 4 (while parsing 'nan1')\""),
    (".[0], .[0] + 0, (.[0] | tojson)", "[1.000]", '1.000|1|"1.000"'),
    ("@csv, unique, min, add", "[1.0,1,1.00]", '"1.0,1,1.00"|[1.0]|1.0|3'),
    ("map(. + 0)", "[1e15,1e16,1.2e16,1e17]", "[1000000000000000,1e+16,12000000000000000,1e+17]"),
    ('"ab" * (0, 0.5, 1.9, -1)', "null", '""|""|"ab"|null'),
    ("[.[].a?], [.[]?.a?]", '[{"a":1},2,{"a":3}]', "[1,3]|[1,3]"),
    ("def f($a): a; [f(1, 2)]", "null", "[1,2,1,2]"),
    ("[last(empty)], [limit(3; repeat(. * 2))], [range(0; 3; 0)]", "1", "[null]|[2,2,2]|[]"),
    ("try from_entries catch .", '[{"key":1}]', '"Cannot use number (1) as object key"'),
    ("@html", '"<&\'\\">"', '"&lt;&amp;&apos;&quot;&gt;"'),
    ("-., abs, length, -(-. | abs)", "100000000000000000001", "-1e+20|100000000000000000001|1e+20|-1e+20"),
    ("[., -.] | map(length)", "-9007199254740993", "[9007199254740992,9007199254740992]"),
    ('indices(","), rindex(",")', '"é,b,c"', "[2,4]|4"),
    ('[match("(a)?(?<n>b)?").captures[].string], capture("(?<x>a)?")', '"z"', '["",""]|{"x":""}'),
    (
        '[sub("b"; empty)], [gsub("(?<x>[bc])"; .x, if .x == "b" then "2" else empty end)]',
        '"abc"',
        '["abc"]|["abc","a2"]',
    ),
    (
        "[try .[{}] catch ., try .[{start: 1}] catch .] | unique[]",
        "[1]",
        '"Start and end indices of an array slice must be numbers"',
    ),
    ('(try .["a":] catch .)', '"x"', '"Start and end indices of an string slice must be numbers"'),
    ('[scan("a*?")], gsub("a*?"; "-"), [match("a??b|"; "g").string]', '"aab"', '["","","",""]|"-a-a-b-"|["","ab",""]'),
    ("[erf, remainder(5; 3), isfinite]", "0", "[0,-1,true]"),
    ('[match("^", "$"; "g").offset], gsub("^"; ">")', '"a\\nb"', '[0,3]|">a\\nb"'),
    ('match("(?<x>b)(c)?").captures[1]', '"ab"', '{"offset":-1,"string":null,"length":0,"name":null}'),
    ('try (error("x") // 1) catch .', "null", '"x"'),
    ("try (.a.b.c?) catch ., (.a.b.c)?", "1", '"Cannot index number with string \\"a\\""'),
    (
        "[.[] | try tonumber catch .]",
        '["1.50","abc"]',
        "[1.50,\"Invalid numeric literal at EOF at line 1, column 3 (while parsing 'abc')\"]",
    ),
    (
        'indices(""), (try (1 % 0) catch .)',
        '"a"',
        '[]|"number (1) and number (0) cannot be divided (remainder) because the divisor is zero"',
    ),
]


def test_ascii_output_of_strings_is_quoted_even_if_it_is_raw() -> None:
    out, err, status = asyncio.run(run_script('jq -nra \'"é",["é"]\' -c; jq -nja \'"é"\''))
    assert (out, err, status) == (b'"\\u00e9"\n["\\u00e9"]\n"\\u00e9"', b"", 0)


def test_raw_output0_has_no_other_way_to_end_a_string() -> None:
    script = 'printf \'1 2 3\' | jq --raw-output0 \'if . == 2 then "a\\u0000", "b" else "c" end\''
    out, err, status = asyncio.run(run_script(script))
    assert (out, status) == (b"c\0c\0", 0)
    assert err == b"jq: error (at <stdin>:0): Cannot dump a string containing NUL with --raw-output0 option\n"


def test_a_program_may_begin_with_a_dash() -> None:
    script = "echo 5 | jq -c '-.'; jq -nc '-(1), -.5'; jq -n -x"
    out, err, status = asyncio.run(run_script(script))
    assert (out, status) == (b"-5\n-1\n-0.5\n", 2)
    assert err.startswith(b"jq: Unknown option ")


@pytest.mark.parametrize(("program", "text", "lines"), EXACT)
def test_prints_exactly(program: str, text: str, lines: str) -> None:
    files = {"program.jq": program.encode(), "input.json": text.encode() + b"\n"}
    out, err, status = asyncio.run(run_script("jq -c -f program.jq input.json", files))
    assert (out.decode(), err, status) == (lines.replace("|", "\n") + "\n", b"", 0)
