"""Patches between revisions: hunks in git's format, for files, links, modes, renames and directories."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from ramet import Store
from ramet.workspace.stored.file_patch import PATCH_BYTES, file_patch


def edit(store: Store, *scripts: str) -> None:
    async def run() -> None:
        for script in scripts:
            async with store.open("w") as ws:
                result = await ws.execute(script)
                assert result.exit_code == 0, result.stderr

    asyncio.run(run())


def texts(store: Store, paths: tuple[str, ...] = ()) -> dict[str, str]:
    return {patch.path: str(patch) for patch in store["w"].patch(paths=paths)}


def test_hunks_have_context_and_both_sides(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create("w")
    edit(store, "seq 20 > /f", "sed -i 's/^10$/ten/' /f")
    assert texts(store)["/f"] == (
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    )
    (patch,) = store["w"].patch()
    assert (patch.added, patch.removed, patch.note) == (1, 1, "")
    assert b"\x1b[31m-10\x1b[0m\n" in list(patch.lines(color=True, context=0))


def test_git_applies_what_is_printed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create("w")
    edit(
        store,
        "mkdir /d; seq 30 > /d/a; printf 'no end' > /b; echo gone > /c; ln -s a /d/l; echo x > /m; "
        "echo moved here > /old",
        "sed -i 3d /d/a; sed -i '$a more' /d/a; printf 'an end\\n' > /b; rm /c; ln -sfn b /d/l; chmod 755 /m; "
        "mv /old /new; mkdir /e; echo 'a b' > '/e/with space'",
    )
    for name, revision in (("before", "1"), ("after", "2")):
        store["w"].checkout(str(tmp_path / name), revision=revision)
    text = b"".join(line for patch in store["w"].patch("1", "2") for line in patch.lines())
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path / "before", input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    same = subprocess.run(
        ["diff", "-r", "--no-dereference", "before", "after"], cwd=tmp_path, capture_output=True, check=False
    )
    assert same.returncode == 0, same.stdout


def test_what_has_no_lines_says_why(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create("w")
    edit(
        store,
        f"printf 'a\\0b' > /raw; head -c {PATCH_BYTES + 1} /dev/zero > /large; mkdir /empty /full; echo > /full/f",
    )
    found = texts(store)
    assert found["/raw"].endswith("new file mode 100644\nBinary files differ\n")
    assert found["/large"].endswith("Files larger than 4 MiB differ\n")
    assert found["/empty"] == "diff --git a/empty b/empty\nnew file mode 40755\n"
    assert "/full" not in found and "/full/f" in found, "the file below says it"


def test_paths_narrow_it_by_whole_segments(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create("w")
    edit(store, "mkdir /src; echo 1 > /src/a; echo 2 > /srcs")
    assert list(texts(store, paths=("/src",))) == ["/src/a"]
    assert list(texts(store, paths=("/srcs", "/src/a"))) == ["/src/a", "/srcs"]


def test_a_terminal_obeys_no_escape_in_the_content() -> None:
    patch = file_patch("/f", None, b"\x1b]0;title\x07\n")
    assert b"".join(patch.lines(color=True)).count(b"\x1b]") == 0
    assert b"\x1b]0;title" in b"".join(patch.lines()), "a pipe gets the bytes"
    assert "a/x\\ny" in str(file_patch("/x\ny", b"1\n", b"2\n"))
