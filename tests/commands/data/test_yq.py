"""yq: jq's expressions over YAML."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.shell_runner import run_script

from ramet.commands.data import yaml_json, yaml_text
from ramet.commands.data.yaml_style import Looks

pytest.importorskip("yaml")

FILE = b"name: demo\nports:\n  - 80\n  - 443\nnested:\n  key: value\n"
CASES = [
    ("yq .name f.yaml", b"demo\n", 0),
    ("yq '.ports[0]' f.yaml", b"80\n", 0),
    ("yq .nested f.yaml", b"key: value\n", 0),
    ("yq -o json .ports f.yaml", b"[\n  80,\n  443\n]\n", 0),
    ("yq -c . f.yaml", b'{"name":"demo","ports":[80,443],"nested":{"key":"value"}}\n', 0),
    ("yq '.name = \"x\" | .name' f.yaml", b"x\n", 0),
    ("yq -i '.name = \"new\"' f.yaml ; yq .name f.yaml", b"new\n", 0),
    ("yq -n '{a: 1}'", b"a: 1\n", 0),
    ("yq '.[' f.yaml", b"", 1),
    ("yq . nosuch.yaml", b"", 1),
    ("yq -oj -c .ports f.yaml", b"[80,443]\n", 0),
    ("yq -o=props .nested f.yaml", b"key = value\n", 0),
    ("yq -o xml . f.yaml", b"", 1),
    ("echo '{\"a\":[1]}' | yq -p json .", b"a:\n  - 1\n", 0),
    ("printf 'n,v\\na,1\\n' | yq -p csv -o json -c .", b'[{"n":"a","v":1}]\n', 0),
    ("printf 'n,v\\na,1\\n' | yq -p=csv -o=tsv .", b"n\tv\na\t1\n", 0),
    ("printf 'a.b = 3\\n' | yq -p props .a", b"b: 3\n", 0),
    ("printf '%0.s[' {1..9000} > f; printf '%0.s]' {1..9000} >> f; yq . f", b"", 1),
    ("printf '%0.s- ' {1..9000} | yq .", b"", 1),
]

STYLED = b"""# top
name: app # beside
list: [1, "two"] # flow
nested:
  # about the key
  key: "val"
  items:
    - a: 1.50
      b: x
    # before the second
    - a: 2
text: |
  one

  two
folded: >-
  some
  words
kept: |+
  k

yes: 0x1F
"a b": ~
# end
"""
EDITS = [
    (".", {}),
    ('.nested.key = "new"', {'"val"': '"new"'}),
    (".nested.items[1].a = 3", {"- a: 2": "- a: 3"}),
    ("del(.nested.items[0])", {"    - a: 1.50\n      b: x\n": ""}),
    ("del(.list)", {'list: [1, "two"] # flow\n': ""}),
    ('.list += ["x y"]', {'"two"]': '"two", x y]'}),
    ('.more = {"t": "true", "m": null, "d": "a: b", "e": []}',
     {"# end\n": 'more:\n  t: "true"\n  m: null\n  d: "a: b"\n  e: []\n# end\n'}),
]  # fmt: skip


@pytest.mark.parametrize(("program", "changes"), EDITS)
def test_what_is_not_changed_looks_as_it_did(program: str, changes: dict[str, str]) -> None:
    expected = STYLED.decode()
    for old, new in changes.items():
        assert old in expected
        expected = expected.replace(old, new)
    found, err, status = asyncio.run(run_script(f"yq -i '{program}' f.yaml; cat f.yaml", {"f.yaml": STYLED}))
    assert (found.decode(), status) == (expected, 0), err


@pytest.mark.parametrize(("script", "out", "status"), CASES)
def test_output_and_status(script: str, out: bytes, status: int) -> None:
    found, err, code = asyncio.run(run_script(script, {"f.yaml": FILE}))
    assert (found, code) == (out, status), err


JSON_TEXTS = [
    "{}",
    " [ ] ",
    '{"a":[1,-2.50,1e3,-0,true,false,null,"x y"],"b":{"c":{}},"a b":"#no comment","d":"\\u00e9\\n\\/"}',
    '[\n  {"k": "v, w",\n   "k": 2},\n  [[], [[]]]\n]\n\n',
    '{"long": "' + "x" * 2000 + '", "n": 12345678901234567890}',
]
NO_JSON_TEXTS = [
    "{a: 1}",
    '["a" "b"]',
    "[1,]",
    "[1] # c",
    "[1]\n---\n[2]",
    '["a\nb"]',
    '["\x85"]',
    "[1}",
    "[01]",
    "x",
    "",
]


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_json_is_read_as_the_yaml_that_it_is(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    import yaml  # type: ignore[import-untyped]

    quick = yaml_json.read(text)
    monkeypatch.setattr(yaml_json, "read", lambda _: None)
    [slow] = yaml_text.read(yaml, text)
    assert quick is not None
    assert (quick.value, list(quick.below)) == (slow.value, list(slow.below))
    assert _plain(quick.looks) == _plain(slow.looks)
    assert len(quick.known) == len(slow.known)


def _plain(looks: Looks) -> object:
    children = {name: _plain(child) for name, child in looks.children.items()}
    return looks.style, looks.source, looks.comment, [*looks.above], {**looks.keys}, children


@pytest.mark.parametrize("text", NO_JSON_TEXTS)
def test_what_is_more_than_json_is_left_to_the_reader_of_yaml(text: str) -> None:
    assert yaml_json.read(text) is None
