"""Native workspaces for tests; skipped, with the reason, where the machine cannot build a box."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from ramet.native.ingredients import ingredients
from ramet.native.layout import box_owner
from ramet.native.leftovers import remove_layout
from ramet.native.mapped_mount import open_mapped
from ramet.native.options import Native, NativeLimits
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

LIMITS = NativeLimits(memory_bytes=1 << 30, processes=256, file_bytes=256 << 20)
NATIVE = Native(LIMITS)
Run = Callable[[str], IOResult]
SECONDS = 60
"""Bound of one command: the machine may be busy."""


@cache
def missing() -> str:
    return "; ".join(f"{one.name}: {one.detail}" for one in ingredients() if one.required and not one.ok)


@pytest.fixture
def native() -> Native:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    return NATIVE


@pytest.fixture
def run(native: Native) -> Iterator[Run]:
    """Run commands in one native workspace."""
    with asyncio.Runner() as runner:
        ws = Workspace(native=native)

        async def execute(text: str) -> IOResult:
            return await ws.execute(text, timeout=SECONDS)

        try:
            yield lambda text: runner.run(execute(text))
        finally:
            runner.run(ws.close())


@contextmanager
def box_directory() -> Iterator[str]:
    """A directory for boxes of one test: root's boxes cannot reach pytest's."""
    made = tempfile.mkdtemp(dir="/var/tmp", prefix="ramet-test-")
    os.chmod(made, 0o755)
    try:
        yield made
    finally:
        remove_layout(made)


def need(*programs: str) -> None:
    """Skip where the host does not have a program."""
    for name in programs:
        if not os.path.exists(f"/usr/bin/{name}") or shutil.which(name, path="/usr/bin") is None:
            pytest.skip(f"{name} is not in /usr/bin")


def reachable(directory: str) -> bool:
    """Whether a box may write to a directory of this user: root's box does so by an idmapped mount."""
    owner = box_owner()
    fd = open_mapped(directory, owner, writable=True) if owner.foreign else -2
    if fd >= 0:
        os.close(fd)
    return fd != -1


def need_writable(directory: str) -> None:
    """Skip where the file system has no idmapped mounts, and Ramet is root."""
    if not reachable(directory):
        pytest.skip(f"{directory} cannot be mounted for the user of root's box")
