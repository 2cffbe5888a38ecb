"""Commands that coding agents type, in a native workspace: each row has the results of a real machine."""

from __future__ import annotations

import pytest
from tests.workspace.native.conftest import Run, need

from ramet.workspace.result import IOResult

PROJECT = """
mkdir -p /proj/pkg && cd /proj
cat > pkg/__init__.py <<'E'
def add(a, b):
    return a + b
E
cat > test_pkg.py <<'E'
import unittest
from pkg import add
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
if __name__ == "__main__":
    unittest.main()
E
cat > hello.c <<'E'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello %d\\n", argc); return 7; }
E
printf 'all: out.txt\\nout.txt: in.txt\\n\\ttr a-z A-Z < in.txt > out.txt\\n' > Makefile
echo text > in.txt
"""
GIT = "git config --global user.email a@b.c; git config --global user.name n; git config --global init.defaultBranch main; "

# ruff: noqa: E501
ROWS = [
    # program, command, output, status
    ("python3", "python3 -c 'print(6 * 7)'", "42\n", 0),
    ("python3", "python3 -c 'import sys; sys.exit(3)'", "", 3),
    ("python3", "python3 <<'E'\nprint('from a here-doc')\nE", "from a here-doc\n", 0),
    ("python3", "python3 - a b <<< 'import sys; print(sys.argv[1:])'", "['a', 'b']\n", 0),
    ("python3", "cat > s.py <<'E'\nimport sys\nprint(len(sys.argv))\nE\npython3 s.py x y", "3\n", 0),
    ("python3", "printf '#!/usr/bin/env python3\\nprint(1)\\n' > s; chmod +x s; ./s", "1\n", 0),
    ("python3", "printf '#!/usr/bin/python3\\nimport sys; print(sys.argv[0])\\n' > s; chmod +x s; ./s", "./s\n", 0),
    ("python3", "python3 -m json.tool <<< '{\"a\":1}'", '{\n    "a": 1\n}\n', 0),
    ("python3", "python3 -c 'import os; print(os.getcwd())'", "/proj\n", 0),
    ("python3", "X=1 python3 -c 'import os; print(os.environ[\"X\"])'", "1\n", 0),
    ("python3", "export Y=2; python3 -c 'import os; print(os.environ[\"Y\"])'", "2\n", 0),
    ("python3", "Z=3; python3 -c 'import os; print(os.environ.get(\"Z\"))'", "None\n", 0),
    ("python3", "python3 -m unittest -q 2>&1 | tail -1", "OK\n", 0),
    ("python3", "python3 -m compileall -q pkg && ls pkg/__pycache__ | wc -l", "1\n", 0),
    ("python3", "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'", "/proj/v\n", 0),
    ("python3", "python3 -m venv --without-pip v && . v/bin/activate && which python", "/proj/v/bin/python\n", 0),
    ("python3", "python3 -c 'open(\"made.txt\", \"w\").write(\"x\\n\" * 3)'; wc -l < made.txt", "3\n", 0),
    ("python3", "echo in > f; python3 -c 'print(open(\"f\").read(), end=\"\")'", "in\n", 0),
    ("python3", "seq 5 | python3 -c 'import sys; print(sum(map(int, sys.stdin)))' | tr 5 6", "16\n", 0),
    ("python3", "ls *.py | xargs python3 -c 'import sys; print(sys.argv[1:])'", "['test_pkg.py']\n", 0),
    ("python3", "find . -name '*.py' -exec python3 -c 'import sys; print(len(sys.argv))' {} +", "3\n", 0),
    ("python3", "python3 -c 'print(1)' > out; python3 -c 'print(2)' >> out; cat out", "1\n2\n", 0),
    ("python3", "python3 -c 'import sys; print(1, file=sys.stderr)' 2>&1 >/dev/null | cat", "1\n", 0),
    ("python3", "x=$(python3 -c 'print(5)'); echo $((x + 1))", "6\n", 0),
    ("python3", "if python3 -c 'exit(1)'; then echo yes; else echo no; fi", "no\n", 0),
    ("python3", "python3 -c 'exit(4)' | cat; echo ${PIPESTATUS[0]}", "4\n", 0),
    ("python3", "set -o pipefail; python3 -c 'exit(4)' | cat", "", 4),
    ("python3", "python3 -c 'while True: print(1)' 2>/dev/null | head -2", "1\n1\n", 0),
    ("python3", "seq 3 | while read x; do python3 -c \"print($x * 2)\"; done", "2\n4\n6\n", 0),
    ("python3", "timeout 0.3 python3 -c 'import time; time.sleep(60)'; echo $?", "124\n", 0),
    ("python3", "python3 -c 'import os; os.kill(os.getpid(), 9)'; echo $?", "137\n", 0),
    ("python3", "python3 -c 'import time; time.sleep(0.1)' & wait $!; echo $?", "0\n", 0),
    ("python3", "python3 -c 'exit(5)' & wait $!; echo $?", "5\n", 0),
    ("python3", "diff <(python3 -c 'print(1)') <(echo 1) && echo same", "same\n", 0),
    ("python3", "python3 -c 'import sys; print(open(sys.argv[1]).read())' <(echo sub)", "sub\n\n", 0),
    ("python3", "mkdir -p d && cd d && python3 -c 'import os; print(os.getcwd())'", "/proj/d\n", 0),
    ("python3", "ln -s in.txt l; python3 -c 'import os; print(os.readlink(\"l\"))'", "in.txt\n", 0),
    ("python3", "python3 -c 'import os; os.symlink(\"in.txt\", \"m\")'; cat m", "text\n", 0),
    ("python3", "python3 -c 'import sqlite3; print(sqlite3.connect(\"a.db\").execute(\"select 1\").fetchone())'", "(1,)\n", 0),
    ("python3", "sed -i s/text/more/ in.txt; python3 -c 'print(open(\"in.txt\").read())'", "more\n\n", 0),
    ("python3", "command -v python3; type -t python3", "/usr/bin/python3\nfile\n", 0),
    ("python3", "env -i PATH=/usr/bin python3 -c 'import os; print(sorted(os.environ))' | grep -c PATH", "1\n", 0),
    ("git", GIT + "git init -q r && cd r && git status --short | wc -l", "0\n", 0),
    ("git", GIT + "git init -q r && cd r && echo x > f && git add f && git commit -qm one && git log --format=%s", "one\n", 0),
    ("git", GIT + "git init -q r && cd r && echo x > f && git add f && git commit -qm one && echo y >> f && git diff --stat | tail -1", " 1 file changed, 1 insertion(+)\n", 0),
    ("git", GIT + "git init -q r && cd r && echo x > f && git add f && git commit -qm one && git clone -q . ../s && cat ../s/f", "x\n", 0),
    ("git", GIT + "git init -q r && cd r && echo x > f && git add f && git commit -qm one && git checkout -qb b && git branch --show-current", "b\n", 0),
    ("git", GIT + "git init -q r && cd r && echo x > f && git add f && git commit -qm one && rm f && git checkout -q f && cat f", "x\n", 0),
    ("git", GIT + "git init -q r && cd r && echo x > f && git add f && git stash -q; git commit --allow-empty -qm e; git log --oneline | wc -l", "1\n", 0),
    ("node", "node -e 'console.log(1 + 1)'", "2\n", 0),
    ("node", "echo 'console.log(process.argv.length)' > a.js; node a.js x", "3\n", 0),
    ("node", "node -e 'require(\"fs\").writeFileSync(\"n.txt\", \"node\")'; cat n.txt", "node", 0),
    ("node", "echo '{\"a\": 2}' | node -p 'JSON.parse(require(\"fs\").readFileSync(0)).a'", "2\n", 0),
    ("make", "make -s && cat out.txt", "TEXT\n", 0),
    ("make", "make -s nothing 2>/dev/null; echo $?", "2\n", 0),
    ("gcc", "gcc -o hello hello.c && ./hello a; echo $?", "hello 2\n7\n", 0),
    ("gcc", "gcc -o hello hello.c && PATH=/proj:$PATH && hello | wc -w", "2\n", 0),
    ("perl", "perl -ne 'print uc' in.txt", "TEXT\n", 0),
    ("bash", "cat > b.sh <<'E'\npython3 -c 'print(1)'\nE\nbash b.sh", "1\n", 0),
]  # fmt: skip


def shown(result: IOResult) -> tuple[str, int]:
    return result.stdout.decode(), result.exit_code


@pytest.mark.parametrize(("program", "command", "output", "status"), ROWS, ids=[row[1][:60] for row in ROWS])
def test_command(run: Run, program: str, command: str, output: str, status: int) -> None:
    need(program)
    run(PROJECT)
    result = run(command)
    assert (*shown(result), result.stderr.decode() if result.exit_code != status else "") == (output, status, "")


def test_a_server_in_the_background_and_its_client(run: Run) -> None:
    """Loopback inside the box, shared by all programs."""
    need("python3")
    run("mkdir /site && echo page > /site/index.html")
    server = "import http.server as h; s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler); "
    server += "open('/port', 'w').write(str(s.server_port)); s.serve_forever()"
    run(f'cd /site && python3 -c "{server}" > /log 2>&1 &')
    client = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:' + open('/port').read()).read().decode())"
    result = run(f'until [ -s /port ]; do python3 -c "import time; time.sleep(0.05)"; done; python3 -c "{client}"')
    assert shown(result) == ("page\n\n", 0), result.stderr
    assert shown(run("jobs | wc -l; kill %1; wait %1 2> /dev/null; cat /log | grep -c GET")) == ("1\n1\n", 0)


def test_pip_installs_a_local_wheel(run: Run) -> None:
    need("python3", "pip")
    wheel = (
        "import zipfile as z; f = z.ZipFile('toy-1.0-py3-none-any.whl', 'w'); f.writestr('toy.py', 'NAME = \"toy\"'); "
        "f.writestr('toy-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: toy\\nVersion: 1.0\\n'); "
        "f.writestr('toy-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n'); f.writestr('toy-1.0.dist-info/RECORD', 'toy.py,,\\n'); f.close()"
    )
    run(f"mkdir /w && cd /w && cat > make.py <<'E'\n{wheel}\nE\npython3 make.py")
    result = run(
        "cd /w && python3 -m pip install -q --no-index --no-deps --target lib ./toy-1.0-py3-none-any.whl && "
        "PYTHONPATH=lib python3 -c 'import toy; print(toy.NAME)'"
    )
    assert shown(result) == ("toy\n", 0), result.stderr
