"""Lines of tens of megabytes hold up nobody, whatever a command does with them: neither in the loop nor in a thread."""

from __future__ import annotations

import functools
import time

import pytest
from tests.support.loop_holds import held_by, too_long

SIZE = 40 << 20


@functools.cache
def files() -> dict[str, bytes]:
    words = (b"0123456789" * 100 + b" ") * (SIZE // 1001)
    return {"line": words + b"\n", "bare": b"x" * SIZE, "some": b"a line of text\n" * 2000}


SCRIPTS = [
    "sort -k2 bare", "sort -k2,3 line", "sort -mk2 bare some", "sort -ck2 bare", "diff -y bare some",
    "numfmt --invalid=ignore < bare", "numfmt --invalid=ignore < line", "xargs -L1 true < line", "pr bare",
    "pr -n line", "join bare bare", "join line line", "awk '{ print NF }' bare",
    "comm line some", "uniq -i bare", "col < bare", "colrm 3 9 < bare", "ul bare", "column bare", "bc < line",
    """awk 'BEGIN { s = sprintf("%50000000s", 1); gsub(/ /, "ab", s); print length(s) }'""",
    "sqlite3 :memory: < bare", "sqlite3 :memory: < line",
    "factor < bare", "tsort bare", "tsort line", "split -C 1000000 line /tmp/s",
    "parallel true < bare", "parallel true < line", "ed -s bare <<< p", "ed -s line <<< ,n", "diff3 bare bare some",
    "awk /xy/ bare", "awk '{ s = s $0 $0 } END { print length(s) }' line", "awk '{ printf \"%s.\", $0 }' line",
    "awk '/x{3}[yz]+/' bare", "awk -v RS= 1 line",
    "timeout 1 yq . bare", "timeout 2 yq . line",
    "cut -d' ' -f 2- line", "cut --complement -c 5 bare", "grep x bare", "rg x bare", "diff line some",
    "timeout 1 dc bare", "unexpand -a bare",
    "grep -n 1 line", "tar cf - line",
    "tree -P \"$(seq -s '|' 60000)\"", "sed \"s/$(seq -s '\\|' 60000)/x/g\" some",
]  # fmt: skip


async def held(script: str) -> float:
    small = f"for f in *; do echo 1 > /tmp/$f; done; cd /tmp; {script}"
    return await held_by(f"{{ {script}; }} > /dev/null 2>&1", small, files=files(), clock=time.process_time)


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_long_line_holds_up_the_loop(script: str) -> None:
    assert not too_long(lambda: held(script), 0.05, threads=True)
