"""The three trees that stores are measured with, and the tools they are measured beside.

The trees are made once per run from a seed and lie in memory (`/dev/shm` where there is one), so that no disk decides.
`RAMET_BENCH_SCALE` makes them smaller or larger: with 0.25 the large files are 500 MB instead of 2 GB.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SCALE = float(os.environ.get("RAMET_BENCH_SCALE", "1"))
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
STEPS = ("first commit", "unchanged", "1% changed", "checkout", "checkout 99% there")


def scratch(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"ramet-bench-{name}-", dir=MEMORY))


def _corpus() -> bytes:
    """Source text that every machine with Python has."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py"))[:2500])


def small_files(root: Path) -> None:
    """20,000 files of source-like text, 200 MB."""
    rng, corpus = random.Random(1), _corpus()
    for number in range(int(20_000 * SCALE)):
        folder = root / f"package{number // 500}" / f"module{number // 25 % 20}"
        if number % 25 == 0:
            folder.mkdir(parents=True)
        size = min(int(rng.expovariate(1 / 10_500)) + 100, 200_000)
        start = rng.randrange(len(corpus) - size)
        (folder / f"file{number}.py").write_bytes(b"# %d\n" % number + corpus[start : start + size])


def large_files(root: Path) -> None:
    """Few large files, 2 GB: half of the bytes are duplicates at other offsets, half of the rest compresses."""
    rng = random.Random(2)
    corpus = _corpus()
    base = b"".join(
        rng.randbytes(1 << 19) + corpus[(at := rng.randrange(len(corpus) - (1 << 19))) : at + (1 << 19)]
        for _ in range(int(500 * SCALE))
    )
    root.mkdir(exist_ok=True)
    (root / "one.bin").write_bytes(base)
    (root / "two.bin").write_bytes(b"shifted by a few bytes" + base)
    fresh = rng.randbytes(len(base) // 2) + base[: len(base) // 2]
    (root / "three.bin").write_bytes(fresh)
    (root / "four.bin").write_bytes(fresh[: len(fresh) // 3] + b"!" + fresh[len(fresh) // 3 :])


def tiny_files(root: Path) -> None:
    """100,000 files of a line or two."""
    for number in range(int(100_000 * SCALE)):
        folder = root / f"d{number // 10_000}" / f"e{number // 100 % 100}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
        with open(f"{folder}/f{number}", "wb") as file:
            file.write(b"this is the content of file number %d\n" % number * (1 + number % 5))


def change(root: Path) -> None:
    """One file in a hundred gets another line; of a few large files one gets a hundredth replaced in its middle."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    if len(files) < 100:
        with open(files[0], "r+b") as file:
            file.seek(files[0].stat().st_size // 2)
            file.write(random.randbytes(files[0].stat().st_size * len(files) // 100))
        return
    for path in files[::100]:
        with open(path, "ab") as file:
            file.write(b"# changed at %d\n" % time.time_ns())


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


TREES: dict[str, Callable[[Path], None]] = {"20k": small_files, "large": large_files, "100k": tiny_files}


@dataclass(frozen=True)
class Peer:
    """A tool and how it is told to do each step; `None` where it has no such step."""

    name: str
    environment: Callable[[Path, Path], dict[str, str]]
    prepare: list[str]
    commit: list[str]
    checkout: list[str]
    incremental: list[str] | None = None

    @property
    def there(self) -> bool:
        return shutil.which(self.name) is not None

    def run(self, commands: list[str], tree: Path, store: Path, out: Path) -> float:
        environment = {**os.environ, **self.environment(tree, store)}
        script = "\n".join(["set -e", *commands]).format(tree=tree, store=store, out=out)
        began = time.perf_counter()
        done = subprocess.run(["sh", "-c", script], cwd=tree, env=environment, capture_output=True, check=False)
        took = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stderr.decode()[-500:]}")
        return took


def _git(tree: Path, store: Path) -> dict[str, str]:
    who = {f"GIT_{role}_{what}": "bench@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"GIT_DIR": str(store / "git"), "GIT_WORK_TREE": str(tree), "GIT_CONFIG_GLOBAL": "/dev/null", **who}


def _restic(tree: Path, store: Path) -> dict[str, str]:
    where = {"RESTIC_REPOSITORY": str(store / "restic"), "RESTIC_CACHE_DIR": str(store / "cache")}
    return {"RESTIC_PASSWORD": "bench", **where}


def _borg(tree: Path, store: Path) -> dict[str, str]:
    return {"BORG_REPO": str(store / "borg"), "BORG_BASE_DIR": str(store / "base"),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}  # fmt: skip


PEERS = (
    Peer(
        "git", _git, ["git init -q", "git config gc.auto 0"],
        ["git add -A", "git commit -q --allow-empty -m bench"],
        ["GIT_INDEX_FILE={store}/index GIT_WORK_TREE={out} git checkout -q -f HEAD -- ."],
        ["git checkout -q --detach HEAD~1"],
    ),
    Peer("restic", _restic, ["restic init -q"], ["restic backup -q --host bench {tree}"],
         ["restic restore -q latest --target {out}"]),
    Peer("borg", _borg, ["borg init -e none"], ["borg create ::$(date +%s%N) ."],
         ["cd {out} && borg extract ::$(borg list --short --last 1)"]),
    Peer("ostree", lambda _tree, _store: {},
         ["mkdir {store}/ostree", "ostree init --repo={store}/ostree --mode=bare-user-only"],
         ["ostree commit --repo={store}/ostree -b bench --tree=dir={tree}"],
         ["ostree checkout --repo={store}/ostree -H bench {out}/tree"]),
)  # fmt: skip
