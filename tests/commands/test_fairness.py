"""No command holds up the event loop, whatever the shape of what it reads; measured in the loop's own time."""

from __future__ import annotations

import functools
import random
import re

import pytest
from tests.support.loop_holds import held_by, too_long

from ramet.commands.framework.table import MODULES

ROWS = 15_000


@functools.cache
def files() -> dict[str, bytes]:
    rng = random.Random(7)
    rows = [f"10.0.{i % 250}.{i % 7} {i * 7919 % 100_000} [15/Nov] GET /item/{i} HTTP/1.1 200" for i in range(ROWS)]
    other = [row if i % 500 else f"changed {row}" for i, row in enumerate(rows)]
    text = ["\n".join(some).encode() + b"\n" for some in (rows, other, sorted(rows), sorted(other))]
    return {
        **dict(zip(("text", "text2", "sorted", "sorted2"), text, strict=True)),
        "one": b"abc def, " * 150_000,
        "tiny": b"".join(b"%d\n" % (i % 100) for i in range(100_000)),
        "bin": rng.randbytes(1 << 20),
        "pairs": b"".join(b"n%d n%d\n" % (i, i + 1) for i in range(30_000)),
        "json": b"".join(b'{"id":%d,"tags":["a","b"],"v":%d.50}\n' % (i, i) for i in range(20_000)),
        "array": b"[" + b",".join(b'{"id":%d,"v":[%d.5]}' % (i, i) for i in range(30_000)) + b"]\n",
    }


SCRIPTS = [
    "diff text text2", "diff -y text text2", "diff -u sorted sorted2", "cmp -l text text2", "comm sorted sorted2",
    "join sorted sorted2", "paste text text2", "paste -s text", "column -t text", "csplit text 10000 20000",
    "zip -q - text", "xxd bin", "xxd -p bin | xxd -r -p", "xxd bin | xxd -r", "od -c bin", "hexdump -C bin",
    "strings bin", "base64 bin | base64 -d", "fold -w 30 text", "fold -s -w 30 text", "fold -w 30 one", "fmt text",
    "unexpand -a text", "expand one", "rev text", "tac text", "nl tiny", "cat -n tiny", "cat -A bin", "tsort pairs",
    "shuf text", "sort -V text", "sort -t' ' -k2,2n -k1,1 text", "uniq -c tiny", "tr a-z A-Z < one",
    "head -20000 tiny | factor", "factor 100000000006900000000117",
    "numfmt --to=iec < pairs --invalid=ignore", "grep -n 2 tiny",
    "xargs echo < tiny", "grep -o '[0-9]*' text",
    "sed 's/[0-9]/#/g' text", "sed 'N;P;D' tiny", "awk '{a[$1]++} END{for(k in a) print k}' text", "wc -mL bin",
    "awk '{gsub(/[0-9]/,\"#\")} 1' text", "jq . array", "jq -c '.[]' array", "jq -s 'group_by(.tags)' json",
    "jq -c 'select(.id > 5)' json", "split -l 100 text", "cut -d' ' -f2 text", "tar c text | tar t", "gzip -c bin",
    "awk '{a[NR]=$2} END{n=asort(a); for(i=1;i<=n;i++) s+=a[i]; print s, asorti(a,b)}' text",
    "awk '{a[$4]=$2} END{for(k in a) n+=a[k]; print n}' text", "awk '{n+=split($0,q,\"\")} END{print n}' text",
    "awk 'function f(n,i,s){for(i=0;i<n;i++)s+=i; return s} NR==1{print f(3e5)}' text",
    "awk 'function f(n){return n<2?n:f(n-1)+f(n-2)} NR==1{print f(21)}' text", "sort -rn tiny tiny tiny",
    # Every other command that reads something, and the long line through those that work on lines.
    "zip -q a.zip text bin; unzip -p a.zip; zipinfo a.zip", "gzip -c bin | gunzip; gzip -c text | zcat",
    "gzip -kf text; zgrep -c GET text.gz; zegrep -c GET text.gz; zfgrep -c GET text.gz; zcmp text.gz text",
    "head -c 300000 text > t; xz -kf t; xzgrep -c GET t.xz; xzegrep -c GET t.xz; xzfgrep -c GET t.xz; xzcmp t.xz t",
    "head -c 300000 text > t; bzip2 -kf t; bzgrep -c GET t.bz2; bzegrep -c GET t.bz2; bzfgrep -c GET t.bz2",
    "head -c 300000 text > t; bzip2 -kf t; xz -kf t; bzcmp t.bz2 t; bzdiff t.bz2 t; xzdiff t.xz t",
    "gzip -kf text; zdiff text.gz text2", "head -c 300000 text | bzip2 | bunzip2; head -c 300000 text | bzip2 | bzcat",
    "xz -0 -c text | unxz; xz -0 -c text | xzcat", "lzma -0 -c text | unlzma; lzma -0 -c text | lzcat",
    "compress -c bin | uncompress; compress -c text | zcat",
    "zstd -c bin | unzstd; zstd -c text | zstdcat", "head -5000 tiny | sed 's/$/+1/' | bc",
    "echo '2^100000; obase=16; 3^40000; 9^999999' | bc", "echo 'scale=1000; 4*a(1); e(1); l(2)' | bc -l",
    "md5sum one; sha1sum one; sha224sum one; sha256sum one; sha384sum one; sha512sum one; b2sum one",
    "cksum one; sum one; sum -s one; cksum -a bsd bin", "base32 bin | base32 -d", "basenc --z85 -w0 bin",
    "basenc --base2msbf bin", "head -c 1000000 one; head -n -5 text; tail -c 1000000 one; tail -n +5 text",
    "envsubst < text", "look 10.0.1 sorted", "less text; more text", "gzip -kf text; zless text.gz; zmore text.gz",
    "seq 200000", "seq 0 .5 20000",
    "yes | head -c 2000000", "numfmt --to=iec < tiny", "numfmt --field=2 --to=si < text", "parallel -j2 echo ::: a b c",
    "diff -u text text2 > p; patch -o /tmp/out text p", "split -b 100000 bin; split -n l/7 text",
    "csplit -s text '/item.500/' '{*}'", "tac one", "tar czf a.tgz text bin; tar tzf a.tgz",
    "iconv -f latin1 -t utf-8 bin; dos2unix < text; unix2dos < text", "dd if=bin bs=1000 status=none", "uniq one",
    "wc text one", "xargs -n1000 echo < one", "head -3000 pairs | xargs -I{} echo {}", "yq . json", "tee a b < one",
    "cat text one bin", "rev one", "nl one", "cut -c 5-20 one", "cut -d, -f3- one", "paste one one", "comm one one",
    "join one one", "join -t, text text2", "expand text", "unexpand one", "head -c 200000 one | fmt",
    "column tiny", "column -t pairs", "column -J -N a,b pairs", "hexdump bin", "hd bin", "od bin",
    "od -t x1z bin", "head -c 100000 bin | od -t f8", "xxd -i bin", "xxd one", "strings -n 2 one", "shuf -n 5 tiny",
    "sort one", "sort -u tiny", "sort -R text", "sort -h tiny", "sort -k3 text", "sort -m sorted sorted2",
    "sort -c sorted", "tr -d a < one", "tr -s ' ' < text", "awk '{print length}' one", "gawk '{print $2}' text",
    "mawk 1 text; nawk 1 text", "sed s/abc/x/g one", "sed 's/^/x/' tiny", "sed -n '$p' text", "grep -c abc one",
    "egrep -c '2$' tiny; fgrep -c GET text", "jq length array", "jq -R length text", "jq -s length json",
    "jq -C . array", "jq -c --stream . array", "jq -n '[inputs.v] | add' json", "jq --tab . array | jq -c .",
    "jq '{a: ., b: 1}' array | jq -c .a", "sed -E 's/([a-z]+) ([a-z]+)/\\2 \\1/g' one", "sed 's/[a-c]/&&/g' one",
    "sort -t' ' -k1,1 -k2,2nr text", "paste -s -d, tiny", "paste - - - < tiny",
    "shuf -i 1-300000", "cut -d' ' -f1,3 text",
    "factor < tiny", "cmp one one", "install text x; cp one y; mv y z; shred -n1 x",
    "cat bin | file -",
    # Very many files, there or not, each of them done with in a moment.
    "touch {1..4000}; cat *; grep -l x *; md5sum [1-9]*; chmod 600 [1-9]*; stat [1-9]*; rm [1-9]*",
    "cat {1..9000}; wc {1..9000}; basename -a {1..60000}; dirname {1..60000}; getopt ab {1..60000}",
]  # fmt: skip


async def held(script: str) -> float:
    small = f"head -c 99 text > t; for f in *; do cp t /tmp/$f; done; cd /tmp; {script}"
    return await held_by(f"{{ {script}; }} > /dev/null", small, files=files())


IDLE = re.findall(
    r"\S+",
    """
    arch basename chgrp chmod chown clear curl date df dir dirname du echo env expr false fd fdfind
    find fallocate flock free getconf getopt groups help hostid hostname id ionice kill link ln locate
    logname ls mail man mkdir mkfifo mknod mktemp nice nohup nproc pathchk pgrep pidof pkill post
    printenv printf prename ps pwd query readlink realpath rename file-rename rm rmdir setsid sleep
    stat stdbuf stty sync test time timeout touch tput tree true truncate tty uname unlink uptime
    users uuidgen vdir watch wget whereis which who whoami [
    """,
)
"""What reads no data, or only what it is told."""
SLOW = {"rg", "sqlite3"}
"""What may hold the loop a little longer, or is only tried on less."""


def test_every_command_that_reads_is_looked_at() -> None:
    words = {word for script in SCRIPTS for word in re.findall(r"[a-z0-9]+", script)}
    assert set(MODULES) - words - set(IDLE) <= SLOW


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_command_holds_up_the_loop(script: str) -> None:
    assert not too_long(lambda: held(script), 0.03)  # the mark is 20 ms
