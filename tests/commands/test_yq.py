"""yq: jq's expressions over YAML."""

from __future__ import annotations

import asyncio

import pytest
from tests.shell_runner import run_script

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
    ("echo '{\"a\":[1]}' | yq -p json .", b"a:\n- 1\n", 0),
    ("printf 'n,v\\na,1\\n' | yq -p csv -o json -c .", b'[{"n":"a","v":1}]\n', 0),
    ("printf 'n,v\\na,1\\n' | yq -p=csv -o=tsv .", b"n\tv\na\t1\n", 0),
    ("printf 'a.b = 3\\n' | yq -p props .a", b"b: 3\n", 0),
]


@pytest.mark.parametrize(("script", "out", "status"), CASES)
def test_output_and_status(script: str, out: bytes, status: int) -> None:
    found, err, code = asyncio.run(run_script(script, {"f.yaml": FILE}))
    assert (found, code) == (out, status), err
