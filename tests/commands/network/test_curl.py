"""curl next to the real one, both talking to the same server on loopback: output, files, exit status and messages."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.web_fake import Web, web_fake

from ramet import Workspace
from ramet.backends.local.ram import RAMResource

FILES = {"data.txt": b"one\r\ntwo\n", "a.json": b'{"a": 1}', "pic.png": b"\x89PNG\0", "form.txt": b"%{http_code}\n"}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


CASES = """
curl -s $U/hello
curl -sS $U/nope
curl -sf $U/nope
curl -sSf $U/nope
curl -sS --fail-with-body $U/nope
curl -s $U/echo
curl -s -A agent/1 -e http://ref.example/ $U/echo
curl -s -A '' $U/echo
curl -s -H 'X-A: 1' -H 'x-b:2' -H 'Accept:' -H 'X-Empty;' $U/echo
curl -s -H 'User-Agent: mine' $U/echo
curl -s -d a=1 -d b=2 $U/echo
curl -s -d @data.txt $U/echo
curl -s --data-binary @data.txt $U/echo
curl -s --data-raw @data.txt $U/echo
curl -s --data-urlencode 'a=b c&d' --data-urlencode 'x@data.txt' --data-urlencode '=p q' --data-urlencode 'r s' $U/echo
curl -s -G -d a=1 --data-urlencode 'q=x y' "$U/echo?z=0"
curl -s --json '{"a": 1}' $U/echo
curl -s --json @a.json $U/echo
curl -s -X DELETE $U/echo
curl -s -X PATCH -d x -H 'Content-Type: text/plain' $U/echo
curl -s -u user:pass $U/echo
curl -s --oauth2-bearer tok $U/echo
curl -s $UP/echo
curl -s -T data.txt $U/echo
curl -s -T data.txt $U/echo/
echo piped | curl -s -T - $U/echo
echo piped | curl -s -d @- $U/echo
curl -s -I $U/hello
curl -s -i $U/hello
curl -s -i -X POST $U/status?is=201
curl -s -D - $U/hello
curl -s -D head.txt -o out.txt $U/hello; cat head.txt out.txt
curl -s -o out.txt $U/hello; cat out.txt
curl -s -O $U/file/name.bin; wc -c < name.bin
curl -s -OJ $U/named/x; cat report.txt
curl -s -o a.out $U/hello -o b.out $U/nope; cat a.out b.out
curl -s --create-dirs -o d/e/f.txt $U/hello; cat d/e/f.txt
curl -s --output-dir sub --create-dirs -O $U/hello; cat sub/hello
curl -s -o no/such/dir $U/hello
curl -sS -O $U/
curl -s -w '%{http_code} %{size_download} %{content_type} %{num_redirects} %{method}' $U/hello
curl -s -w '%{scheme} %{http_version}\\n' $U/hello
curl -s -o /dev/null -w '%{response_code}|%{url_effective}|%{remote_ip}|%{exitcode}|%{filename_effective}' $U/nope
curl -s -w @form.txt $U/hello
curl -s -w '%{redirect_url} %% \\t%{nonsense}|\\n' "$U/to?url=/hello"
curl -s "$U/to?url=/hello"
curl -sL "$U/to?url=/hello"
curl -sL -i "$U/to?url=/hello"
curl -sL -d x=1 "$U/to?url=/echo"
curl -sL -d x=1 "$U/to?is=307&url=/echo"
curl -sL -d x=1 "$U/to?is=303&url=/echo"
curl -sL -X POST -d x=1 "$U/to?is=301&url=/echo"
curl -sL -X PUT -d x=1 "$U/to?is=302&url=/echo"
curl -sL --post302 -d x=1 "$U/to?is=302&url=/echo"
curl -sL -u user:pass "$U/to?url=/echo"
curl -sL -u user:pass -H 'Cookie: k=v' "$U/to?url=$L/echo"
curl -sL -H 'Authorization: Bearer x' "$U/to?url=$L/echo"
curl -sL --location-trusted -u user:pass "$U/to?url=$L/echo"
curl -sSL --max-redirs 3 $U/round
curl -sS $U/short
curl -sS $U/silent
curl -sS -m 0.3 $U/slow
curl -sS http://127.0.0.1:$CLOSED/
curl -sS http://
curl -sS foo://127.0.0.1/
curl -sS "$U/a b"
curl -s -r 2-5 $U/file | od -An -tx1
printf abc > part; curl -s -C - -o part $U/file; wc -c < part
printf abc > part; curl -sS -C - -o part $U/hello; cat part
curl -s -C 10230 $U/file | od -An -tx1
curl -s --compressed $U/packed
curl -s $U/packed | od -An -tx1 | head -1
curl -s -b 'k=v; l=w' $U/echo
curl -s -c jar $U/cookies; grep -v '^# ' jar; curl -s -b jar $U/echo
curl -s -b jar -c jar $U/cookies $U/echo
curl -s --max-filesize 10 $U/file
curl -sS --max-filesize 10 $U/file
curl -s "$U/{hello,nope}" "$U/status?is=20[0-1]"
curl -s -o 'got#1' "$U/{hello,nope}"; cat gothello gotnope
curl -s -g "$U/{hello}"
curl -s $U/hello?a=%20b#frag
curl -s $U/./x/../hello
curl -s --url $U/hello
curl -s -d a -F b=c $U/echo
curl
"""


def rows() -> list[str]:
    return [line for line in CASES.splitlines() if line]


def run_real(line: str, folder: Path) -> tuple[str, str, int]:
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, timeout=30, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return done.stdout.decode("latin-1"), done.stderr.decode("latin-1"), done.returncode


def run_ours(line: str) -> tuple[str, str, int]:
    async def act() -> tuple[str, str, int]:
        network = {"allow": ["127.0.0.1", "localhost"]}
        async with Workspace({"/": RAMResource()}, network=network) as ws:
            for name, data in FILES.items():
                await ws.dispatch("write", f"/{name}", data)
            done = await ws.execute(line)
            return done.stdout.decode("latin-1"), done.stderr.decode("latin-1"), done.exit_code

    return asyncio.run(act())


VARYING = [
    (re.compile(r',\n  "Expect": "100-continue"'), ""),
    (re.compile(r"after \d+ m(illiseconds|s)"), "after N ms"),
    (re.compile(r"------------------------[0-9a-f]{16}"), "BOUNDARY"),
    (re.compile(r"curl: try 'curl --help'.*|curl: \(2\) no URL.*|(curl: )?(Try|try) 'curl --help'.*"), "USAGE"),
    (re.compile(r"curl: no URL specified\n"), ""),
]


def plain(text: str) -> str:
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", rows())
def test_it_does_what_the_real_one_does(line: str, web: Web, tmp_path: Path) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    names = {"U": web.url, "L": f"http://localhost:{web.port}", "UP": f"http://u:p@127.0.0.1:{web.port}", "CLOSED": "1"}
    text = re.sub(r"\$(UP|U|L|CLOSED)\b", lambda found: names[found[1]], line)
    wanted, found = run_real(text, tmp_path), run_ours(text)
    assert (plain(found[0]), plain(found[1]), found[2]) == (plain(wanted[0]), plain(wanted[1]), wanted[2])
