"""What a type checker says of a user's program: each public call refuses an argument with a misspelled name."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet.agents import openai_agents
from ramet.apps.client.client import RemoteKeys, RemoteStore
from ramet.apps.client.reference import RemoteRef
from ramet.apps.client.workspace import RemoteWorkspace
from ramet.store.verbs.key_admin import Keys
from ramet.workspace.agent.sandbox import Files, Sandbox
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.workspace import StoredWorkspace
from ramet.workspace.workspace import Branch, Speculation

ROOT = Path(__file__).parent.parent
PYRIGHT = ROOT / ".venv-emulators" / "node_modules" / ".bin" / "pyright"
WRONG = "misspelled"
RETURNED = (
    StoredWorkspaceRef, StoredWorkspace, RemoteStore, RemoteRef, RemoteWorkspace, RemoteKeys, Keys, Sandbox, Files,
    Branch, Speculation,
)  # fmt: skip
"""What public calls return, with public methods."""
NAMED: dict[str, tuple[str, ...]] = {
    "ramet.agents.anthropic_memory": ("RametAsyncMemoryTool", "RametMemoryTool"),
    "ramet.agents.claude_agent": ("tool_names", "workspace_server", "workspace_tools"),
    "ramet.agents.deepagents": ("RametSandbox",),
    "ramet.agents.fsspec": ("RametFileSystem",),
    "ramet.agents.langchain": ("workspace_tools",),
    "ramet.agents.openai_agents": tuple(openai_agents.__all__),
    "ramet.agents.pydantic_ai": ("RametWorkspace", "RametWorkspaceBackend"),
    "ramet.apps.server.settings": ("ServerSettings",),
}
"""Calls of other modules that the documentation names, also for frameworks that are not installed."""
OPEN = {
    "FsspecResource", "Store.aio", "RemoteStore.aio", "ramet.agents.fsspec.RametFileSystem",
    "ramet.agents.pydantic_ai.RametWorkspace",
}  # fmt: skip
"""What hands its arguments on to a filesystem or a user's function, or is a dataclass of a framework that is absent."""


def calls() -> Iterator[tuple[str, str]]:
    """Each public call with one wrong argument, and what it is a call of."""
    public = {name: getattr(ramet, name) for name in ramet.__all__ if name != "__version__"}
    for name, value in (public | {kind.__name__: kind for kind in RETURNED}).items():
        if name in public and callable(value) and not issubclass(type(value), type(ramet.MountMode)):
            yield name, f"{name}({WRONG}=1)"
        for member, method in inspect.getmembers(value, callable) if inspect.isclass(value) else ():
            if not member.startswith("_") and "ramet" in (getattr(method, "__module__", "") or ""):
                yield f"{name}.{member}", f"given(ramet_{name}).{member}({WRONG}=1)"
    for module, names in NAMED.items():
        for name in names:
            yield f"{module}.{name}", f"{module}.{name}({WRONG}=1)"


CALLS = {what: call for what, call in calls() if what not in OPEN}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, str]]:
    """A program with one wrong call per line."""
    kinds = sorted({what.partition(".")[0] for what in CALLS if "." in what and not what.startswith("ramet.")})
    lines = ["from __future__ import annotations", "from typing import TypeVar", "from ramet import *"]
    lines += [f"from {kind.__module__} import {kind.__name__}" for kind in RETURNED]
    lines += [f"import {module}" for module in NAMED]
    lines += ["T = TypeVar('T')", "def given(kind: type[T]) -> T: raise NotImplementedError"]
    lines += [f"ramet_{kind} = {kind}" for kind in kinds]
    lines += ["async def main() -> None:"]
    where: dict[int, str] = {}
    for what, call in CALLS.items():
        lines.append(f"    {call}")
        where[len(lines)] = what
    place = tmp_path_factory.mktemp("program") / "program.py"
    place.write_text("\n".join(lines) + "\n")
    return place, where


def test_mypy_refuses_misspelled_arguments(program: tuple[Path, dict[int, str]]) -> None:
    place, where = program
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    cache = ROOT / ".mypy_cache" / "program"
    done = subprocess.run(
        [*words, f"--cache-dir={cache}", str(place)], capture_output=True, text=True, cwd=place.parent, check=False
    )
    found = {int(one[1]) for one in re.finditer(rf'^program\.py:(\d+): error: .*"{WRONG}"', done.stdout, re.MULTILINE)}
    assert [what for line, what in where.items() if line not in found] == [], done.stdout[-3000:] + done.stderr


def test_pyright_refuses_misspelled_arguments(program: tuple[Path, dict[int, str]]) -> None:
    if not PYRIGHT.exists():
        pytest.skip("pyright is not installed; `make test` installs it where npm can be reached")
    place, where = program
    words = [str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=place.parent, check=False)
    said: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    found = {one["range"]["start"]["line"] + 1 for one in said if f'"{WRONG}"' in one["message"]}
    assert [what for line, what in where.items() if line not in found] == []
