"""Build the wheel and the sdist, check them, and run the documentation on the wheel: `make test-wheel`.

The Python blocks of each page run in an environment that has the wheel and the extras that the page names, and nothing
else: no checkout, no tools of developers.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.test_docs import PAGES, ROOT, blocks

EXTRA = re.compile(r"(?:ramet|\.)\[([\w,-]+)\]'")
OTHER = re.compile(r"`pip install ([\w-]+)`")
"""Packages that a page names in addition."""
CONSOLE = ("--version", "doctor --json", "demo")
"""Verbs that a bare installation must have."""
BARE: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
HERE = Path(sys.executable)


def build(into: Path) -> Path:
    """Build both distributions, check what people see of them, and return the wheel."""
    subprocess.run([HERE, "-m", "build", "--quiet", "--outdir", into, ROOT], check=True, stdout=subprocess.DEVNULL)
    [wheel], [sdist] = into.glob("*.whl"), into.glob("*.tar.gz")
    for tool in ("twine check --strict", "check-wheel-contents"):
        name, *words = tool.split()
        subprocess.run([HERE.parent / name, *words, wheel], check=True, stdout=subprocess.DEVNULL)
    names = zipfile.ZipFile(wheel).namelist()
    assert "ramet/py.typed" in names and any(name.endswith("licenses/LICENSE") for name in names), names[-9:]
    assert all(name.startswith(("ramet/", "ramet-")) for name in names), names
    tops = {name.split("/")[1] for name in tarfile.open(sdist).getnames() if "/" in name}
    assert tops >= {"src", "tests", "docs", "pyproject.toml", "LICENSE"} and not tops & {".ci", "AGENTS.md"}, tops
    return wheel


def environment(place: Path, wheel: Path, extras: frozenset[str], others: frozenset[str]) -> Path:
    named = f"ramet[{','.join(sorted(extras))}] @ {wheel.as_uri()}" if extras else str(wheel)
    python = place / "bin" / "python"
    subprocess.run([HERE, "-m", "venv", place], check=True)
    uv = HERE.parent / "uv"
    fast: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python, named, *others]
    if not uv.exists() or subprocess.run(fast, stderr=subprocess.DEVNULL, check=False).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", named, *others], check=True)
    return python


SECONDS = 300
"""How long one block may take on a busy machine."""


def run(python: Path, where: str, code: str) -> str:
    """Run a block in an empty directory; the error, or nothing."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAMET_", "PYTHON"))}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [python, "-W", "error", "-c", code], cwd=folder, env=env | {"HOME": folder}, capture_output=True,
                text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{where}: did not end within {SECONDS} seconds"
    return "" if done.returncode == 0 else f"{where}: status {done.returncode}\n{done.stderr}"


def main() -> int:
    wanted: dict[tuple[frozenset[str], frozenset[str]], list[tuple[str, str]]] = {BARE: []}
    for page in PAGES:
        text, mine = page.read_text(), f"{page.relative_to(ROOT)}#"
        extras = frozenset(extra for found in EXTRA.findall(text) for extra in found.split(","))
        wanted.setdefault((extras, frozenset(OTHER.findall(text)) - {"ramet"}), []).extend(
            block for block in blocks("python") if block[0].startswith(mine) and "RAMET_URL" not in block[1]
        )
    failed, count = [], 0
    with tempfile.TemporaryDirectory(prefix="ramet-wheel-") as folder, ThreadPoolExecutor(2) as pool:
        wheel = build(Path(folder, "dist"))
        for number, (needs, found) in enumerate(wanted.items()):
            if not found and needs != BARE:
                continue
            python = environment(Path(folder, f"env{number}"), wheel, *needs)
            if needs == BARE:
                found += [(f"ramet {verb}", f"import runpy, sys; sys.argv[1:] = {verb.split()!r};"
                           "runpy.run_module('ramet', run_name='__main__')") for verb in CONSOLE]  # fmt: skip
            count += len(found)
            failed += [error for error in pool.map(lambda block: run(python, *block), found) if error]  # noqa: B023
    print("\n".join(failed))
    print(f"wheel: {count - len(failed)} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
