"""curl next to the real one, both talking to the same server on loopback: output, files, exit status and messages."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.tls import TestAuthority
from tests.support.web_fake import Web, web_fake

from ramet import Workspace
from ramet.backends.local.ram import RAMResource
from ramet.commands.network.curl import transfer

FILES = {"data.txt": b"one\r\ntwo\n", "a.json": b'{"a": 1}', "pic.png": b"\x89PNG\0", "form.txt": b"%{http_code}\n"}


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_fake() as running:
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(authority: TestAuthority) -> Iterator[Web]:
    with web_fake(authority.server(["localhost"])) as running:
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
curl -s -F a=b -F f=@data.txt $U/echo
curl -s -F 'f=@data.txt;type=text/x-y;filename=n.bin' $U/echo
curl -s -F 'f=<data.txt' $U/echo
curl -s -F 'f=<data.txt;type=text/html' $U/echo
curl -s -F 'a=x;type=text/html' -F 'e=' $U/echo
curl -s -F 'p=@pic.png' -F 'j=@a.json' $U/echo
curl -s -F 'many=@data.txt,a.json' $U/echo
curl -s --form-string 'a=@data.txt;type=x' $U/echo
curl -s -F 'a="x;y";type=text/x' $U/echo
curl -s -F 'f=@"data.txt"' $U/echo
curl -sS -F 'f=@missing' $U/echo
curl -sS -F 'f=<missing' $U/echo
curl -sS -F novalue $U/echo
echo in | curl -s -F 'f=@-' $U/echo
echo in | curl -s -F 'f=@-;filename=in.txt' $U/echo
echo in | curl -s -F 'f=<-' $U/echo
curl -s -F 'f=@data.txt;headers="X-P: 1"' $U/echo
curl -s -F 'f=@data.txt;encoder=base64' $U/echo
curl -s -F a=b -H 'X-A: 1' $U/echo
curl -s -X PUT -F a=b $U/echo
curl -s -F 'a"b\\c=d' -F 'f=@data.txt;filename=q"r.txt' $U/echo
curl -sL -F a=b "$U/to?is=307&url=/echo"
curl -sL -F a=b "$U/to?is=302&url=/echo"
curl -sZ $U/hello $U/hello
curl -sZ -o z1 -o z2 $U/hello $U/nope; cat z1 z2
curl -sZ "$U/{hello,hello,hello}"
curl -sSZ $U/hello http://127.0.0.1:$CLOSED/
curl -sSfZ $U/nope $U/hello
curl -sSZ --parallel-max 1 -d x $U/echo $U/echo
curl -sS $S/hello
curl -sk $S/hello
curl -s --cacert ca.pem $S/hello
curl -sS --cacert missing $S/hello
curl -sS --cacert ca.pem https://127.0.0.1:$SP/hello
curl -sSk https://127.0.0.1:$SP/hello
curl -sS https://127.0.0.1:$PP/hello
curl -sS http://127.0.0.1:$SP/hello
curl -s -k -o /dev/null -w '%{scheme} %{http_code}' $S/hello
printf abc > part; curl -s -C - -o part $U/file; cksum < part
printf abc > part; curl -sS -C 3 -o part $U/file; cksum < part
curl -s -C - -O $U/file; cksum < file
head -c 10240 /dev/zero > part; curl -sS -C - -o part $U/file; wc -c < part
curl -s -T a.json -T data.txt $U/echo/1 $U/echo/2
curl -s -T '{a.json,data.txt}' $U/echo/
curl -sS -T missing $U/echo
curl -s -T data.txt -X POST $U/echo
curl -s -T data.txt -H 'Expect:' -H 'Content-Type: a/b' $U/echo
curl -s -C 4 -T data.txt $U/echo
curl -s -I -T data.txt $U/echo
curl -s --json '{"a"' --json ': 1}' $U/echo
echo '{}' | curl -s --json @- $U/echo
curl -s --json '{}' -H 'Content-Type: a/b' -H 'Accept: c/d' $U/echo
curl -s --json '{}' -X PUT $U/echo
curl -s -o /dev/null -w '%{header_json}' $U/hello
curl -s -o /dev/null -w '%header{content-type}|%header{nope}|%{num_headers}|%{size_header}' $U/hello
curl -s -o /dev/null -w '%{size_upload}' -d abc $U/hello
curl -s -o /dev/null -w '%{stderr}err %{stdout}out %{urlnum}\\n' $U/hello $U/hello
curl -s -w '%{onerror}bad %{exitcode} %{errormsg}\\n' $U/hello http://127.0.0.1:$CLOSED/
curl -s -o /dev/null -w '%{size_request} %{num_connects} %{speed_upload} %{http_connect}' $U/hello
curl -s -o /dev/null -w '%{remote_port} %{referer} %{proxy_ssl_verify_result}' -e http://r/ $U/hello
curl -s -o /dev/null -w 'a%b%%c%{http_code' $U/hello
curl -s -c - $U/cookies
curl -s -c jar $U/cookies; curl -s -b jar -j $U/echo; cat jar
curl -s -b missing $U/echo
curl -s -b a=1 -b b=2 $U/echo
curl -sL -b x=1 "$U/to?url=/echo"
curl -sS -c /no/such/jar $U/cookies
curl -s -H 'Cookie: mine=1' -b b=2 $U/echo
curl -s --data-urlencode 'a@b=c' $U/echo
curl -s --data-urlencode @data.txt $U/echo
curl -s --data-urlencode '=a&b' --data-urlencode 'a=' --data-urlencode 'n@data.txt' $U/echo
curl -s --data-urlencode 'é=ü~-._' $U/echo
curl -sS --data-urlencode 'a@missing' $U/echo
curl -sS -d @missing $U/echo
curl -s -d '' $U/echo
curl -s -d a --data-binary @pic.png --data-raw @x $U/echo
curl -sS --fail-with-body -o out $U/nope; cat out
curl -sS -f --fail-with-body $U/nope
curl -sS --fail-with-body -f $U/nope
curl -sSf $U/status?is=401
curl -sSf -o out -w '%{http_code}\\n' $U/status?is=500; ls out
curl -sSf $U/hello $U/nope $U/hello
curl -sSf --fail-early $U/nope $U/hello
curl -s -H 'Accept-Encoding: gzip' --compressed $U/packed
curl -s --compressed $U/hello
curl -s --compressed $U/deflated
curl -sS --compressed $U/damaged
curl -sS --compressed $U/strange
curl -s -i --compressed $U/packed
curl -s -r -5 $U/file | od -An -tx1
curl -s -r 10238- $U/file | od -An -tx1
curl -s -r 0-0 -w '%{http_code}' -o /dev/null $U/file
curl -s -r 20000- -w '%{http_code}' $U/file
curl -sSf -r 20000- $U/file
curl --nosuch $U/hello 2>/dev/null
curl -X 2>/dev/null
curl -m abc $U/hello 2>/dev/null
curl -sS --max-redirs 0 -L "$U/to?url=/hello"
curl -sS -o out "$U/[1-"
curl -sS "$U/echo?a[]=1"
curl -sS "$U/echo?a={b"
curl -sS "$U/echo?a=b}"
curl -s "$U/echo?a=\\[b\\]"
curl -s -F 'a=x;y' $U/echo
curl -s -F 'a=x;type=text/html;charset=utf-8' $U/echo
curl -s -F 'f=@data.txt;type=text/html;charset=utf-8;filename=z' $U/echo
curl -s -F 'f=@pic.png;encoder=base64;headers="X: 1";headers="Y: 2"' $U/echo
curl -s -T a.json $U/echo $U/hello
curl -s -e http://r/ -L "$U/to?url=/echo"
curl -sI -X GET $U/hello
curl -s -I -d a $U/echo
curl -sS -u user $U/echo 2>/dev/null
curl -s -X OPTIONS $U/echo
curl -s -e 'http://a/;auto' -L "$U/to?url=/echo"
curl -sSL "$U/to?url=foo://x/"
curl -s -w '%{redirect_url}' "$U/to?url=foo://x/"
curl -s -o /dev/null -D - "$U/to?url=/hello" -L
curl -sSL --max-redirs -1 "$U/to?url=/hello"
curl -sS --proto =https $U/hello
curl -sS --proto =https,http $U/hello
curl -sS --proto -all,http $U/hello
curl -sS --proto -http $U/hello
curl -sSL --proto-redir =https "$U/to?url=/hello"
curl -sSL --proto =http "$U/to?url=$S/hello"
curl -sSk --proto =https --tlsv1.2 $S/hello
curl -sSk --proto-default https localhost:$SP/hello
curl -sv $U/hello
curl -sv $U/hello -o /dev/null 2>&1 | head -3
curl -sv -d a=1 $U/echo -o out
curl -sSv $U/short
curl -sSfv $U/nope
curl -svL "$U/to?url=/hello" 2>&1 | grep -E '^[<>]'
curl -sIf $U/nope
curl -si -f $U/nope
curl -sfi -o out $U/nope; cat out
curl -s -i -L -f "$U/to?url=/nope"
curl -sS -o dir/x $U/hello
mkdir dir; curl -sS -o dir $U/hello
curl -sS -o a -C - $U/hello; curl -sS -o a -C - $U/hello; cat a
curl -sSL -o x "$U/to?url=/hello" -w '%{url_effective}|%{redirect_url}|%{num_redirects}'
curl -s
curl -s --ssl-no-revoke --tcp-fastopen $U/hello
curl -fsSL -o /dev/null -w "%{http_code}" $U/nope
curl -fsSL $U/nope -o x || echo failed
curl -s --output /dev/null --silent --head --fail $U/nope && echo yes || echo no
curl -s -o /dev/null -I -w '%{http_code}\\n' $U/hello
curl -s --user user:pass --basic $U/private
curl -s -u 'user:pa:ss' $U/echo
curl -s $U/hello $U/nope -o a; cat a
curl -s --remote-name-all $U/hello $U/nope; cat hello nope
cat a.json | curl -s -X POST -H 'Content-Type: application/json' --data-binary @- $U/echo
curl -s "$U/echo?q=a|b"
curl -s "$U/echo?q='x'"
curl -s '$U/echo/a"b<c>'
curl -sS -m 1 $U/slow -o f; cat f
curl -sSL --max-redirs 2 $U/round
curl -sS $U/short -o f; cat f
curl -s -X DELETE -w '%{http_code}' $U/status?is=204
curl -s -i $U/status?is=204
curl -s -D /dev/stderr -o /dev/null $U/hello
curl -sL -w '%{http_code}' $U/status?is=304
curl -s -L -d a=1 "$U/to?is=308&url=/echo"
curl -s --fail-with-body -w '%{http_code}' $U/status?is=422
curl -s -d 'a=1&b=2' -H 'Content-Type:' $U/echo
curl -s -H @data.txt $U/hello
curl -s "$U/status?is={200,404}" -o /dev/null -w '%{http_code} '
curl -s -b @jar $U/echo
curl -s -b '' -L "$U/to?url=/cookies" -o /dev/null -c -
curl -s localhost:$PP/hello
curl -s //127.0.0.1:$PP/hello
curl -sS http://127.0.0.1:99999/
curl -sS http://127.0.0.1:abc/
curl -sS " $U/hello"
curl -s -H 'X-A;' -H 'X-B: ' -H 'X-C:' $U/echo
curl -s -H 'content-type: text/x' -d a $U/echo
curl -s -H 'Connection: close' $U/hello
curl -s -H 'no colon' $U/echo
curl -s $U/echo -u user:pass -H 'Authorization: Bearer x'
curl -sL -u u:p -o /dev/null -w '%{http_code}' "$U/to?url=$L/private"
curl -s -D h1 -o b1 -D h2 $U/hello; cat h2
curl -sS -r 5-2 $U/file -o /dev/null -w '%{http_code}'
curl -s -T a.json $U/echo -X PATCH
curl -s -o - -o f $U/hello $U/hello; cat f
curl -s -X GET -d a=1 $U/echo
curl -s -f -o f --remove-on-error $U/nope; ls f
curl -s --output-dir no/dir -O $U/hello
curl -sS "$U/to?url=/status%3Fis=500" -L -f
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


def run_ours(line: str, files: dict[str, bytes]) -> tuple[str, str, int]:
    async def act() -> tuple[str, str, int]:
        network = {"allow": ["127.0.0.1", "localhost"]}
        async with Workspace({"/": RAMResource()}, network=network) as ws:
            for name, data in files.items():
                await ws.dispatch("write", f"/{name}", data)
            done = await ws.execute(line)
            return done.stdout.decode("latin-1"), done.stderr.decode("latin-1"), done.exit_code

    return asyncio.run(act())


VARYING = [
    (re.compile(r',\n  "Expect": "100-continue"'), ""),
    (re.compile(r", \('Expect', '100-continue'\)"), ""),
    (re.compile(r"after \d+ m(illiseconds|s)"), "after N ms"),
    (re.compile(r"------------------------[0-9a-f]{16}"), "BOUNDARY"),
    (re.compile(r"DL% UL%.*\n"), ""),  # a progress meter, which ours does not have
    (re.compile(r"\r[ 0-9-]+ --.*?     (?=curl|\r|\n|$)\n?"), ""),
    (re.compile(r"[{}] \[\d+ bytes data\]\n"), ""),
    (re.compile(r"(\* The requested URL returned error)"), r"< \r\n\1"),
    (re.compile(r"< \r\n< \r\n"), "< \r\n"),
    (re.compile(r"deflate, gzip, br, zstd"), "deflate, gzip"),
    (re.compile(r"curl: \(35\) .*"), "curl: (35) ..."),
    (re.compile(r"in URL position \d+:\n(.*)\n *\^"), r"in URL: \1"),
    (re.compile(r"curl: try 'curl --help'.*|curl: \(2\) no URL.*|(curl: )?(Try|try) 'curl --help'.*"), "USAGE"),
    (re.compile(r"curl: no URL specified!?\n"), ""),
]


def plain(text: str) -> str:
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return text


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", rows())
def test_it_does_what_the_real_one_does(
    line: str, web: Web, secure: Web, authority: TestAuthority, tmp_path: Path
) -> None:
    files = {**FILES, "ca.pem": authority.path.read_bytes()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    names = {
        "U": web.url, "L": f"http://localhost:{web.port}", "UP": f"http://u:p@127.0.0.1:{web.port}", "CLOSED": "1",
        "S": f"https://localhost:{secure.port}", "SP": str(secure.port), "PP": str(web.port),
    }  # fmt: skip
    text = re.sub(r"\$(UP|U|L|CLOSED|SP|PP|S)\b", lambda found: names[found[1]], line)
    wanted, asked = run_real(text, tmp_path), arrived(web)
    found = run_ours(text, files)
    assert (plain(found[0]), plain(found[1]), found[2]) == (plain(wanted[0]), plain(wanted[1]), wanted[2])
    assert arrived(web) == asked


def arrived(web: Web) -> list[str]:
    """What the server got since the last look."""
    found = [plain(f"{method} {path} {list(headers.items())} {body!r}") for method, path, headers, body in web.seen]
    web.seen.clear()
    return sorted(found)


RETRIES = """
1 | --retry 2 -sS $U/flaky | busy,at last | | 0 | 1
1 | --retry 2 -o out $U/flaky | | W 2 | 0 | 1
9 | --retry 2 -sS $U/flaky | busy,busy,busy | | 0 | 1,2
9 | --retry 2 --retry-delay 1 -sS $U/flaky | busy,busy,busy | | 0 | 1,1
9 | --retry 9 --retry-max-time 2 -sS $U/flaky | busy,busy,busy | | 0 | 1,2
9 | --retry 1 -sSf $U/flaky | | E22 503,E22 503 | 22 | 1
9 | --retry 1 -f $U/flaky | | E22 503,W 1,E22 503 | 22 | 1
1 | --retry 1 -sS -d x $U/flaky | busy,at last | | 0 | 1
1 | --retry 1 -sS $U/flaky?after=2 | busy,at last | | 0 | 2
1 | --retry 1 --retry-delay 1 -sS $U/flaky?after=3 | busy,at last | | 0 | 3
1 | --retry 1 --retry-max-time 1 -o out $U/flaky?after=2 | | WL | 0 |
0 | --retry 1 -sSf $U/nope | | E22 404 | 22 |
0 | --retry 1 --retry-all-errors -sSf $U/nope | | E22 404,E22 404 | 22 | 1
0 | --retry 1 -sS http://127.0.0.1:1/ | | E7 | 7 |
0 | --retry 1 --retry-connrefused -sS http://127.0.0.1:1/ | | E7,E7 | 7 | 1
0 | --retry 1 -sS -m 0.3 $U/slow | abcabc | E28,E28 | 28 | 1
0 | --retry 1 --retry-all-errors -sS $U/short | abcabc | E18,E18 | 18 | 1
0 | --retry 1 -sS http://refused.example/ | | P7 | 7 |
"""
"""How often the server fails | options | stdout | stderr | exit status | seconds of the pauses.

Recorded from the real one, which waits in fact; but for the last row, which is about the policy.
"""
ERRORS = {
    "E22 503": "curl: (22) The requested URL returned error: 503",
    "E22 404": "curl: (22) The requested URL returned error: 404",
    "E7": "curl: (7) Failed to connect to 127.0.0.1 port 1 after N ms: Couldn't connect to server",
    "E28": "curl: (28) Operation timed out after N ms with 3 out of 10 bytes received",
    "E18": "curl: (18) transfer closed with 7 bytes remaining to read",
    "P7": "curl: (7) the network policy refuses http://refused.example/: no rule of the network policy allows it; "
          "ask its owner to allow the host (`network: {allow: [...]}`, or --allow-host)",
    "W 1": "Warning: Problem : HTTP error. Will retry in 1 seconds. 1 retries left.",
    "W 2": "Warning: Problem : HTTP error. Will retry in 1 seconds. 2 retries left.",
    "WL": f"Warning: {transfer.TOO_LATE}",
}  # fmt: skip


@pytest.mark.parametrize("row", [line for line in RETRIES.splitlines() if line])
def test_it_tries_again_as_the_real_one_does(row: str, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    fails, options, out, err, status, pauses = (part.strip() for part in row.split("|"))
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(transfer, "pause_for", wait)
    clock = iter(range(100))
    monkeypatch.setattr(transfer, "elapsed_since", lambda began: sum(waited) + next(clock) / 1000)
    web.failures = int(fails)
    try:
        found = run_ours(f"curl {options.replace('$U', web.url)}", {})
    finally:
        web.failures = 0
    lines = [ERRORS.get(line, line) for line in filter(None, err.split(","))]
    assert plain(found[1]).splitlines() == lines and found[2] == int(status), found
    assert found[0].replace("\n", "") == out.replace(",", "")
    assert waited == [float(one) for one in filter(None, pauses.split(","))]
