"""Commands that coding agents type, in a native workspace: each row has what real bash did on the same tree."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import io
import os
import re
import tarfile

import pytest
from tests.spec.table import Row, load
from tests.workspace.native.conftest import Run, need
from tests.workspace.native.record import TABLES, run_row

from ramet.native.options import Native

PROGRAMS = ("python3", "git", "node", "npm", "make", "gcc", "g++", "perl", "pip")
ROWS = [pytest.param(row, id=f"{path.stem}: {row.title[:60]}") for path in TABLES for row in load(path)]


@pytest.mark.parametrize("row", ROWS)
def test_row(native: Native, row: Row) -> None:
    need(*(name for name in PROGRAMS if re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/.-])", row.script)))
    found = asyncio.run(run_row(row, native=None))
    assert (found.stdout, found.exit_code) == (row.stdout, row.status), found.stderr.decode(errors="replace")


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
    assert (result.stdout, result.exit_code) == (b"toy\n", 0), result.stderr


def test_pytest_finds_the_failure_and_then_none(run: Run) -> None:
    """With the pytest of this environment, copied into the tree."""
    need("python3")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments"):
            spec = importlib.util.find_spec(name)
            assert spec is not None and spec.origin is not None
            folder = os.path.dirname(spec.origin)
            tar.add(spec.origin if name == "py" else folder, "py.py" if name == "py" else name)
    files = base64.b64encode(packed.getvalue()).decode()
    assert run(f"mkdir /lib3; cd /lib3; base64 -d <<< {files} | tar x").exit_code == 0
    run("export PYTHONPATH=/lib3 PYTHONDONTWRITEBYTECODE=1; mkdir /p; cd /p; echo 'def inc(x): return x' > m.py")
    run("printf 'from m import inc\\ndef test_inc():\\n    assert inc(1) == 2\\n' > test_m.py")
    test = "python3 -m pytest -q -p no:cacheprovider 2>&1 | tail -1"
    assert run(test).stdout.startswith(b"1 failed")
    assert run(f"sed -i 's/return x/return x + 1/' m.py; {test}").stdout.startswith(b"1 passed")
