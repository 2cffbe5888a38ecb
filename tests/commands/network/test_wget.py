"""wget next to the real one, both talking to the same server on loopback: output, files and exit status."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.web_fake import CONTENT, Web, web_fake

from ramet import Workspace
from ramet.backends.local.ram import RAMResource
from ramet.commands.network.wget import download, site

CASES = """
wget -q -O - $U/hello
wget -q $U/hello; cat hello
wget -q -P d/e $U/hello; cat d/e/hello
wget -q $U/; cat index.html
wget -q "$U/echo?a=1"; grep path 'echo?a=1'
wget -q -O- --header 'X-A: 1' --header 'Accept: text/x' $U/echo
wget -q -O- -U me --referer http://r.example/ $U/echo
wget -q -O- --post-data a=1 $U/echo
wget -q -O- --method PUT --body-data x $U/echo
printf x=2 > body; wget -q -O- --post-file body $U/echo
wget -q -O- $U/nope
wget -q -O- $U/status?is=500 -t 1
wget -q -O- "$U/to?url=/hello"
wget -q -O- --max-redirect 0 "$U/to?url=/hello"
wget -q -O- --max-redirect 2 $U/round
wget -q -O- --post-data a=1 "$U/to?is=302&url=/echo"
wget -q -O- --post-data a=1 "$U/to?is=307&url=/echo"
head -c 100 /dev/zero > file; wget -q -c $U/file; wc -c < file
wget -q -c $U/file; wget -q -c $U/file; wc -c < file
wget -q --spider $U/hello
wget -q --spider $U/nope
wget -q --content-disposition $U/named/x; cat report.txt
wget -q -nc $U/hello; echo mine > hello; wget -q -nc $U/hello; cat hello
wget -q -O both $U/hello $U/hello; cat both
printf '%s\\n' $U/hello $U/nope > list; wget -q -i list -O -
wget -q -r -np $U/site/; find 127.0.0.1* -type f | sed 's/:[0-9]*//' | sort
wget -q -r -l 1 -nH $U/site/; find site -type f | sort
wget -q -r -nd -np $U/site/; ls *.html *.txt
wget -q -t 1 -T 2 -O- http://127.0.0.1:1/
wget -q -O- ftp:///nonsense
wget -q -t 1 -O- $U/silent
head -c 100 /dev/zero > part; wget -q -c -O part $U/file; wc -c < part
wget -q -c -O new $U/file; wc -c < new
head -c 10240 /dev/zero > part; wget -q -c -O part $U/file; wc -c < part
printf abc > part; wget -q -c -O part $U/hello; cat part
printf abc > part; wget -q -O part $U/nope; cat part
wget -q -O no/such/file $U/hello
wget -q -P sub $U/hello; cat sub/hello
wget -q $U/hello $U/hello; ls hello*
wget -q "$U/hello?a=b/c"; ls hello*
wget -q -O- --header 'Accept:' --header 'X-A: 1' --header 'X-A: 2' $U/echo
wget -q -O- --user u --password p $U/echo
wget -q -O- --auth-no-challenge --user u --password p $U/echo
wget -q -O- http://u:p@127.0.0.1:$P/echo
wget -q -O- --post-data '' $U/echo
wget -q -O- --post-data a=1 --header 'Content-Type: a/b' $U/echo
wget -q -O- --method DELETE $U/echo
wget -q -O- --content-on-error $U/nope
wget -q --content-on-error $U/nope; cat nope
wget -q -O- -S $U/hello
wget -nv -O- $U/nope 2>&1 | sed 's/.*ERROR/ERROR/'
wget -q -O- 127.0.0.1:$P/hello
wget -q -O- --user u --password p $U/private
wget -q -O- http://u:p@127.0.0.1:$P/private
wget -q -O- $U/private
wget -q -O- --user u --password p "$U/to?url=/private"
wget -q
wget --nosuch
wget -q -O- $U/packed | od -An -tx1 | head -1
wget -q -O- $U/short -t 1
wget -q -O- "$U/to?is=303&url=/echo" --post-data a=1
wget -q -O- "$U/to?is=301&url=/echo" --method PUT --body-data a=1
wget -q -np -nH -r $U/site/c/; find . -type f | sort
mkdir -p site; echo old > site/b.html; wget -q -r -nc -nH $U/site/; cat site/b.html
wget -q -x $U/site/b.html; find 127* -type f | sed 's/:[0-9]*//'
wget -q -nH -x $U/site/b.html; find site -type f
wget -q --no-check-certificate -O- $U/hello
wget -qO- $U/hello
wget -q -O - $U/hello -O -
wget $U/hello; cat hello
wget -nv $U/hello
wget -nv -O - $U/hello
wget -O x $U/hello
wget -O - $U/hello
wget $U/nope
wget -nv $U/nope
wget -t 1 $U/status?is=500
wget -S $U/hello
wget --spider $U/hello
wget --spider -S $U/nope
wget --spider -nv $U/hello
wget -c $U/file; wget -c $U/file
head -c 100 /dev/zero > file; wget -c $U/file
wget -t 1 $U/silent
wget -t 1 $U/short
wget -t 2 --waitretry=0 $U/short
wget -T 2 -t 1 http://127.0.0.1:1/
wget -nc $U/hello; wget -nc $U/hello
wget -qO- "$U/echo?q=a b"
echo $U/hello | wget -q -i - -O -
wget -q --header='Authorization: Basic dTpw' -O- $U/private
wget --max-redirect 0 "$U/to?url=/hello"
"""
METER = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( \([0-9.]+ [KMG]?B/s\))?"), "WHEN"),
    (re.compile(r"\n +[0-9]+K.*"), ""),
    (re.compile(r"\n\n\n+(?=WHEN)"), "\n\n"),
    (re.compile(r"Usage: wget.*\n\nTry .*\n|Try .*\n"), "USAGE"),
]
"""What a progress meter shows, and how the usage is told: ours have their own way."""
HARMLESS = re.compile(r'\s*"(Connection|Accept-Encoding)": ')


def rows() -> list[str]:
    return [line for line in CASES.splitlines() if line]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


def plain(text: str) -> list[str]:
    """The lines without the order of headers, and without what belongs to the connection."""
    return sorted(line.rstrip(",") for line in text.splitlines() if not HARMLESS.match(line))


def messages(text: str) -> str:
    for pattern, word in METER:
        text = pattern.sub(word, text)
    return text


def arrived(web: Web) -> list[tuple[str, str, list[tuple[str, str]], bytes]]:
    """What the server got since the last look, without what belongs to the connection."""
    found = [
        (method, path, sorted(row for row in headers.items() if row[0] not in ("Connection", "Accept-Encoding")), body)
        for method, path, headers, body in web.seen if path != "/robots.txt"
    ]  # fmt: skip
    web.seen.clear()
    return sorted(found)


@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
@pytest.mark.parametrize("line", rows())
def test_it_does_what_the_real_one_does(line: str, web: Web, tmp_path: Path) -> None:
    text = line.replace("$U", web.url).replace("$P", str(web.port))
    real = subprocess.run(
        ["bash", "-c", text], cwd=tmp_path, capture_output=True, timeout=30, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip

    async def act() -> tuple[bytes, str, int]:
        async with Workspace({"/": RAMResource()}, network={"allow": ["127.0.0.1"]}) as ws:
            done = await ws.execute(text)
            return done.stdout, done.error_text, done.exit_code

    asked = arrived(web)
    found, said, status = asyncio.run(act())
    assert arrived(web) == asked
    assert (plain(found.decode("latin-1")), status) == (plain(real.stdout.decode("latin-1")), real.returncode)
    assert messages(said) == messages(real.stderr.decode())


@pytest.mark.parametrize("query", ["", "?whole=1"])
@pytest.mark.parametrize("output", ["-O new", "-O -", "", "-c -O part"])
def test_a_download_that_breaks_off_goes_on_where_it_was(
    output: str, query: str, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(download, "pause_for", wait)

    async def act() -> bytes:
        async with Workspace({"/": RAMResource()}, network={"allow": ["127.0.0.1"]}) as ws:
            await ws.dispatch("write", "/part", CONTENT[:100])
            name = {"-O new": "new", "": "breaking*", "-c -O part": "part"}.get(output)
            end = f"; cat {name}" if name else ""
            done = await ws.execute(f"wget -q {output} '{web.url}/breaking{query}'{end}")
            assert done.exit_code == 0, done
            return done.stdout

    web.failures = 1 if output.startswith("-c") else 3
    found = asyncio.run(act())
    if output.startswith("-c"):  # the first answer is the whole file, of which 100 bytes are known
        assert found == CONTENT and waited == [1.0]
    else:
        assert found == CONTENT and waited == [1.0, 2.0, 3.0]
    assert [headers.get("Range") for _, _, headers, _ in web.seen[-2:]][-1] == "bytes=5000-" or query


def test_a_file_that_exists_is_kept(web: Web) -> None:
    async def act() -> tuple[str, str]:
        async with Workspace({"/": RAMResource()}, network={"allow": ["127.0.0.1"]}) as ws:
            done = await ws.execute(f"echo mine > hello; wget -nv {web.url}/hello; wget -nv {web.url}/hello; cat hello")
            return done.text, done.error_text

    text, said = asyncio.run(act())
    assert text == "mine\n" and '-> "hello.1" [1]' in said and '-> "hello.2" [1]' in said


def test_it_waits_between_pages_not_between_links(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(site, "pause_for", wait)

    async def act() -> None:
        async with Workspace({"/": RAMResource()}, network={"allow": ["127.0.0.1"]}) as ws:
            await ws.execute(f"wget -q -r -np -w 7 {web.url}/site/")

    web.seen.clear()
    asyncio.run(act())
    assert waited == [7.0] * (len(web.seen) - 1)
