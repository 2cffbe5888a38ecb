"""Directories of the box in process: no more is readable there than for programs, and no link leads out."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from ramet.core.paths import parse
from ramet.native.layout import Owner
from ramet.native.system_files import KernelFiles, SystemFiles

OTHER = 1_900_000_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "open").write_text("open")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "closed").mkdir(mode=0o755)
    (tmp_path / "closed/f").write_text("secret")
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "up").symlink_to("../..")
    for name in ("secret", "closed"):
        os.chmod(tmp_path / name, 0)
    return tmp_path


def number_of(files: SystemFiles | KernelFiles, verb: str, path: str) -> int | bytes | list[str]:
    """What a verb returns, or the number of its error."""

    async def act() -> bytes | list[str]:
        where = parse(path)
        if verb == "list":
            return [name async for name, _ in files.scan(where)]
        if verb == "write":
            await files.write(where, b"x")
        return b"".join([block async for block in files.read(where)])

    try:
        return asyncio.run(act())
    except OSError as error:
        return error.errno or 0


def test_files_that_programs_cannot_read_are_closed_to_commands(place: Path) -> None:
    """As root, too: its programs are another user."""
    owner = Owner(OTHER, OTHER) if os.geteuid() == 0 else Owner(os.geteuid(), os.getegid())
    if os.geteuid() == 0:
        os.chmod(place.parent, 0o755)
        os.chmod(place, 0o755)
    files = SystemFiles(os.open(place, os.O_RDONLY), owner)
    assert number_of(files, "read", "/open") == b"open"
    assert number_of(files, "read", "/secret") == errno.EACCES
    assert number_of(files, "list", "/closed") == errno.EACCES
    assert number_of(files, "read", "/closed/f") == errno.EACCES
    assert number_of(files, "write", "/open") == errno.EROFS
    for name in ("/out", "/up", "/up/etc/passwd"):
        assert number_of(files, "read", name) == errno.ELOOP
    files.release()


def test_the_kernel_is_asked_for_few_files() -> None:
    files = KernelFiles()
    assert b"Linux" in bytes(number_of(files, "read", "/version"))  # type: ignore[arg-type]
    listed = number_of(files, "list", "/")
    assert isinstance(listed, list) and "meminfo" in listed
    for path in ("/kcore", "/self/environ", "/1/environ", "/kallsyms", "/self/root/etc/passwd"):
        assert number_of(files, "read", path) == errno.ENOENT
    assert number_of(files, "write", "/version") == errno.EROFS
    assert number_of(files, "list", "/version") == errno.ENOTDIR
