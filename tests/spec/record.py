"""Asks real bash, inside a bubblewrap sandbox, what the scripts of the spec tables do.

    python -m tests.spec.record            records rows that have no expectation yet
    python -m tests.spec.record --all      records every row again
    python -m tests.spec.record --confirm    changes nothing; fails when bash disagrees with a table

Every script runs as a file, in an empty directory, in a sandbox with its own namespaces, no network, no
capabilities and a root of temporary memory.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.spec.table import CASES, Row, dump, load

_SANDBOX = [
    "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL",
    "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
    "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin",
    "--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
    "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "LC_ALL", "C.UTF-8",
    "--setenv", "HOME", "/tmp",
]  # fmt: skip
_TIMES = re.compile(rb"\d+m\d+\.\d+s")
_PIDS = re.compile(rb"(?m)^(bash: line \d+:)? +\d+ (?=[A-Z])")
_DRIVER = """
for script in /cases/*.sh; do
    out=${script%.sh}
    rm -rf /tmp/case; mkdir /tmp/case; cd /tmp/case
    timeout 10 env -u OLDPWD bash "$script" < /dev/null > "$out.out" 2> "$out.err"
    echo $? > "$out.status"
done
"""


def available() -> bool:
    """Is there a bash 5.2 and a sandbox to run it in?"""
    if shutil.which("bwrap") is None or shutil.which("bash") is None:
        return False
    version = subprocess.run(["bash", "-c", "echo $BASH_VERSION"], capture_output=True, text=True, check=False)
    return version.stdout.startswith("5.2")


def ask(rows: list[Row]) -> list[Row]:
    """The rows with what bash does."""
    with tempfile.TemporaryDirectory() as directory:
        cases = Path(directory)
        for place, row in enumerate(rows):
            (cases / f"{place:05d}.sh").write_text(row.script, "utf-8")
        command = [*_SANDBOX, "--bind", directory, "/cases", "bash", "-c", _DRIVER]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=60 + 10 * len(rows))
        answers = []
        for place, row in enumerate(rows):
            stem = cases / f"{place:05d}"
            name = f"/cases/{place:05d}.sh".encode()
            answers.append(
                replace(
                    row,
                    status=int(stem.with_suffix(".status").read_text()),
                    stdout=stem.with_suffix(".out").read_bytes().replace(name, b"bash"),
                    stderr=stem.with_suffix(".err").read_bytes().replace(name, b"bash"),
                )
            )
        return answers


def timeless(row: Row) -> Row:
    """The row without how long something took, and without the processes that were there."""
    return replace(row, stderr=_PIDS.sub(rb"\1 ", _TIMES.sub(b"0s", row.stderr)))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("tables", nargs="*", type=Path, help="tables to look at (all by default)")
    arguments.add_argument("--all", action="store_true", help="record every row again")
    arguments.add_argument("--confirm", action="store_true", help="only compare")
    args = arguments.parse_args()
    if not available():
        print("bash 5.2 and bubblewrap are needed", file=sys.stderr)
        return 2
    wrong = 0
    for path in args.tables or sorted(CASES.glob("*.spec")):
        rows = load(path)
        chosen = [place for place, row in enumerate(rows) if args.all or args.confirm or row.status is None]
        for place, answer in zip(chosen, ask([rows[place] for place in chosen]) if chosen else [], strict=True):
            if args.confirm and timeless(answer) != timeless(rows[place]):
                wrong += 1
                said = f"{answer.status} {answer.stdout!r} {answer.stderr!r}"
                print(f"{path.name}: {rows[place].title}: bash answers {said}")
            rows[place] = answer
        if not args.confirm:
            path.write_bytes(dump(rows).encode("utf-8"))
        print(f"{path.name}: {len(rows)} rows, {len(chosen)} asked")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
