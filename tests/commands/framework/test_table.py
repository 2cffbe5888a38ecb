"""Commands are imported when they are first needed, by threads, whatever runs beside them."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ramet.commands.framework import table
from ramet.commands.framework.table import MODULES, Lazy


def test_modules_are_imported_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        next(name for name, module in MODULES.items() if module == one)
        for one in ("sed", "search.grep", "awk", "data.jq")
    ]
    inside, most = 0, 0
    begun = threading.Event()

    def slow(module: str) -> SimpleNamespace:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        begun.wait(0.02)  # nobody sets it: the others have the time to come
        inside -= 1
        own = SimpleNamespace(aliases=names)
        own.name = module
        return SimpleNamespace(COMMANDS=[own])

    monkeypatch.setattr(table, "import_module", slow)
    monkeypatch.setattr(table, "_imported", set())
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(Lazy.load, map(Lazy, names)))
    assert most == 1


_FIRST = """
import asyncio
from ramet import Workspace
result = asyncio.run(Workspace().execute("echo [1] | jq -c . | head -c 9 | sed s/a/b/ | grep 1 | awk 1 | sort | tree"))
print(result.exit_code, result.error_text)
"""


def test_the_first_pipeline_of_a_process_has_all_its_commands() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("0 \n", "")


def test_a_package_that_many_commands_share_imports_none_of_its_parts() -> None:
    """Or a thread that comes to a part first and one that comes to the package first would wait for each other."""
    show = "import sys, ramet.patterns; print([name for name in sys.modules if name.startswith('ramet.patterns.')])"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
