"""wget next to the real one, both talking to the same server on loopback: output, files and exit status."""

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
"""
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


@pytest.mark.skipif(shutil.which("wget") is None, reason="wget is not installed")
@pytest.mark.parametrize("line", rows())
def test_it_does_what_the_real_one_does(line: str, web: Web, tmp_path: Path) -> None:
    text = line.replace("$U", web.url)
    real = subprocess.run(
        ["bash", "-c", text], cwd=tmp_path, capture_output=True, timeout=30, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip

    async def act() -> tuple[bytes, int]:
        async with Workspace({"/": RAMResource()}, network={"allow": ["127.0.0.1"]}) as ws:
            done = await ws.execute(text)
            return done.stdout, done.exit_code

    found, status = asyncio.run(act())
    assert (plain(found.decode("latin-1")), status) == (plain(real.stdout.decode("latin-1")), real.returncode)
