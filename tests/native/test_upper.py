"""Looking at upper directories while programs change them, and at those that they have closed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ramet.native.upper import Upper, exists_below, walk_upper

WALK = """
import os, sys
if os.geteuid() == 0:
    os.setresgid(1234, 1234, 1234)
    os.setresuid(1234, 1234, 1234)
top = sys.argv[1]
os.makedirs(f"{top}/a/b/c")
open(f"{top}/a/b/c/f", "w").close()
for name in ("a/b/c", "a/b", "a"):
    os.chmod(f"{top}/{name}", 0)
print(sorted(path for path, _ in walk_upper(top)))
first = walk_upper(top)
next(first), next(first)
first.close()
print(sorted(path for path, _ in walk_upper(top, own=False)), oct(os.stat(f"{top}/a").st_mode))
"""


def test_a_closed_directory_is_looked_at_and_stays_closed() -> None:
    """A program could hide from the bound of the disk what it writes there."""
    source = "from ramet.native.upper import walk_upper\n" + WALK
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o777)
        done = subprocess.run(
            [sys.executable, "-c", source, f"{folder}/top"], capture_output=True, text=True, check=False
        )
    assert done.stdout.splitlines() == ["['/a', '/a/b', '/a/b/c', '/a/b/c/f']", "['/a'] 0o40000"], done.stderr


def test_no_link_leads_out_of_the_directory(tmp_path: Path) -> None:
    (upper := tmp_path / "upper").mkdir()
    (outside := tmp_path / "outside").mkdir()
    (outside / "secret").write_text("")
    (upper / "a").mkdir()
    steps = walk_upper(str(upper))
    assert next(steps)[0] == "/a"
    (upper / "a").rmdir()
    (upper / "a").symlink_to(outside)  # a program is faster than the look
    assert list(steps) == []
    assert not exists_below(str(upper), "/a/secret") and exists_below(str(upper), "/a")


def test_a_directory_that_is_gone_has_no_changes(tmp_path: Path) -> None:
    assert Upper(str(tmp_path / "missing")).changed() == []
