"""Images: what is unpacked of layers, what is refused, what is kept and collected."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.native.images import compress_zstd, tar_with, write_layout, write_saved
from tests.workspace.native.conftest import box_directory

from ramet.core.errors import RametError
from ramet.native.image import store as module
from ramet.native.image.root import ImageRoot
from ramet.native.image.store import Images
from ramet.native.layout import Layout

Entries = Sequence[tuple[str, bytes | str | None]]
SHELL: Entries = [("bin/sh", b"#! a shell")]
MOST = 1 << 30


@pytest.fixture
def base() -> Iterator[str]:
    with box_directory() as made:
        yield made


def take(base: str, path: Path, most: int = MOST) -> ImageRoot:
    layout = Layout(base)
    try:
        return Images(base, layout.owner).take(layout, str(path), most)
    finally:
        layout.remove()


def unpacked(base: str, tmp_path: Path, *layers: Entries, **attributes: Any) -> dict[str, str]:
    """Return what layers make: content, or where a link leads, by path."""
    mode = {"mode": 0o755, **attributes}
    root = Path(take(base, write_layout(tmp_path / "image", [tar_with(one, **mode) for one in (SHELL, *layers)])).path)
    return {
        str(path.relative_to(root)): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in root.rglob("*")
        if (path.is_symlink() or path.is_file()) and path.name != "sh"
    }


@pytest.mark.parametrize("compress", [gzip.compress, compress_zstd, bytes])
def test_layers_in_every_form(base: str, tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    layers = [tar_with(SHELL, mode=0o755), tar_with([("usr/lib/a", b"second")])]
    found = take(base, write_layout(tmp_path / "image", layers, ["A=1", "PATH=/opt/bin"], compress=compress))
    assert Path(found.path, "usr/lib/a").read_text() == "second" and found.env == {"A": "1", "PATH": "/opt/bin"}


def test_what_docker_saves_and_the_tar_of_a_root(base: str, tmp_path: Path) -> None:
    saved = write_saved(tmp_path / "saved.tar", [tar_with(SHELL, mode=0o755), tar_with([("f", b"second")])], ["A=1"])
    found = take(base, saved)
    assert Path(found.path, "f").read_text() == "second" and found.env == {"A": "1"}
    for name, data in (
        ("root.tar", tar_with(SHELL, mode=0o755)),
        ("root.tgz", gzip.compress(tar_with(SHELL, mode=0o755))),
    ):
        (tmp_path / name).write_bytes(data)
        assert os.path.exists(f"{take(base, tmp_path / name).path}/bin/sh")


def test_a_tar_of_a_layout(base: str, tmp_path: Path) -> None:
    folder = write_layout(tmp_path / "image", [tar_with(SHELL, mode=0o755)])
    rows = [(str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    (tmp_path / "image.tar").write_bytes(tar_with(rows))
    assert os.path.exists(f"{take(base, tmp_path / 'image.tar').path}/bin/sh")


def test_removals_of_later_layers(base: str, tmp_path: Path) -> None:
    found = unpacked(
        base, tmp_path,
        [("d/a", b"1"), ("d/b", b"1"), ("e/a", b"1"), ("f", b"1"), ("g/h/i", b"1")],
        [("d/.wh.a", b""), ("e/new", b"2"), ("e/.wh..wh..opq", b""), ("f", None), ("g", b"2"), (".wh...", b"")],
    )  # fmt: skip
    assert found == {"d/b": "1", "e/new": "2", "g": "2"}


def test_links_stay_inside(base: str, tmp_path: Path) -> None:
    """A layer writes through links of a lower one, as in the container; none of it may arrive on the host."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    found = unpacked(
        base, tmp_path,
        [("lib", "-> usr/lib"), ("usr/lib", None), ("out", f"-> {outside}"), ("up", "-> ../../../../../.."),
         ("self", "-> /proc/self/root")],
        [("lib/f", b"1"), ("up/g", b"1"), ("up/" + str(outside)[1:], None)],
        [("out/.wh.kept", b""), ("out/h", b"1"), ("hard", "= usr/lib/f")],
    )  # fmt: skip
    assert found["usr/lib/f"] == found["hard"] == "1" and found["g"] == "1"
    assert os.listdir(outside) == ["kept"]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "usr/..//../evil"])
def test_a_path_that_leads_out_is_refused(base: str, tmp_path: Path, name: str) -> None:
    with pytest.raises(RametError, match="leads out of it"):
        unpacked(base, tmp_path, [(name, b"1")])
    assert not [name for name in os.listdir(f"{base}/images") if name not in ("known", "lock")]


def test_a_hard_link_to_the_host_is_refused(base: str, tmp_path: Path) -> None:
    for target in ("/etc/hostname", "../../../../../../etc/hostname"):
        with pytest.raises(RametError, match="leads to nothing"):
            unpacked(base, tmp_path / target.replace("/", "_"), [("hard", f"= {target}")])


def test_devices_and_setuid_bits_are_left_out(base: str, tmp_path: Path) -> None:
    found = take(base, write_layout(tmp_path / "image", [
        tar_with(SHELL, mode=0o6755), tar_with([("dev/sda", b"")], type=b"4"), tar_with([("pipe", b"")], type=b"6"),
    ]))  # fmt: skip
    root = Path(found.path)
    assert not (root / "dev/sda").exists() and not (root / "pipe").exists()
    assert (root / "bin/sh").stat().st_mode & 0o7777 == 0o755


def test_a_damaged_layer_is_refused(base: str, tmp_path: Path) -> None:
    layout = write_layout(tmp_path / "image", [tar_with(SHELL, mode=0o755)], compress=bytes)
    largest = max((layout / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes().replace(b"#! a shell", b"#! another"))
    with pytest.raises(RametError, match="damaged"):
        take(base, layout)
    largest.write_bytes(largest.read_bytes()[:700])
    with pytest.raises(RametError, match="damaged"):
        take(base, layout)
    assert not [name for name in os.listdir(f"{base}/images") if name not in ("known", "lock")]


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("[]", "damaged"), ('{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}', "is no digest"),
        ('{"manifests": []}', "has no manifest"), ("{", "damaged"),
    ],
)  # fmt: skip
def test_a_wrong_index_is_refused(base: str, tmp_path: Path, index: str, why: str) -> None:
    layout = write_layout(tmp_path / "image", [])
    (layout / "index.json").write_text(index)
    with pytest.raises(RametError, match=why):
        take(base, layout)


def test_what_cannot_run_here_is_said(base: str, tmp_path: Path) -> None:
    for machine in ("riscv64", "s390x"):
        with pytest.raises(RametError, match=f"it is for {machine}, and this machine is {os.uname().machine}"):
            take(base, write_layout(tmp_path / machine, [tar_with(SHELL, mode=0o755)], machine=machine))
    found = take(base, write_layout(tmp_path / "both", [tar_with(SHELL, mode=0o755)], platforms=["riscv64"]))
    assert found.is_program("/bin/sh")
    other = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xf3\x00"
    with pytest.raises(RametError, match="it is for riscv64"):
        take(base, write_layout(tmp_path / "elf", [tar_with([("bin/sh", other)], mode=0o755)]))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        ([("usr/f", b"")], "it has no /bin/sh"), ([("bin/sh", "-> /usr/bin/missing")], "it has no /bin/sh"),
        ([("bin/sh", None)], "it has no /bin/sh"), ([("bin/sh", "-> /bin/sh")], "it has no /bin/sh"),
    ],
)  # fmt: skip
def test_an_image_without_a_shell(base: str, tmp_path: Path, layer: Entries, why: str) -> None:
    with pytest.raises(RametError, match=why) as caught:
        take(base, write_layout(tmp_path / "image", [tar_with(layer, mode=0o755)]))
    assert caught.value.code == "native_unavailable" and caught.value.remediation


def test_nothing_there_no_tar_and_too_large(base: str, tmp_path: Path) -> None:
    with pytest.raises(RametError, match="nothing is there"):
        take(base, tmp_path / "missing")
    (tmp_path / "text").write_text("no tar")
    with pytest.raises(RametError, match="damaged"):
        take(base, tmp_path / "text")
    big = write_layout(tmp_path / "image", [tar_with(SHELL, mode=0o755), tar_with([("big", bytes(1 << 20))])])
    with pytest.raises(RametError, match="larger than the bound"):
        take(base, big, most=1 << 19)


def test_a_header_that_is_a_bomb_is_refused(base: str, tmp_path: Path) -> None:
    """An extended header is read whole: a compressed one could take all memory."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    bomb = header.tobuf() + bytes(1 << 20)
    with pytest.raises(RametError, match="damaged"):
        take(base, write_layout(tmp_path / "image", [tar_with(SHELL, mode=0o755), bomb]))
    (tmp_path / "root.tar").write_bytes(bomb)
    with pytest.raises(RametError, match="damaged"):
        take(base, tmp_path / "root.tar")


def test_an_image_is_unpacked_once_and_deleted_when_unused(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    tars = []
    for number in range(3):
        (made := tmp_path / f"{number}.tar").write_bytes(tar_with([*SHELL, ("n", b"%d" % number)], mode=0o755))
        tars.append(made)
    layout = Layout(base)
    held = Images(base, layout.owner).take(layout, str(tars[0]), MOST)
    inode = os.stat(held.path).st_ino
    assert os.stat(take(base, tars[0]).path).st_ino == inode
    second = take(base, tars[1])
    third = take(base, tars[2])
    assert [os.path.exists(one.path) for one in (held, second, third)] == [True, False, True]
    layout.remove()
    take(base, tars[1])
    assert not os.path.exists(held.path)
    tars[1].write_bytes(tar_with([*SHELL, ("n", b"changed")], mode=0o755))
    assert Path(take(base, tars[1]).path, "n").read_text() == "changed"


def test_links_of_an_image_are_not_followed_on_the_host(base: str, tmp_path: Path) -> None:
    found = take(base, write_layout(tmp_path / "image", [
        tar_with([*SHELL, ("usr/bin/leak", "-> /etc/hostname"), ("usr/bin/sh", "-> /bin/sh")], mode=0o755),
        tar_with([("sbin", "-> /")]),
    ]))  # fmt: skip
    assert not found.is_program("/usr/bin/leak") and found.is_program("/usr/bin/sh")
    assert sorted(found.names("/sbin")) == ["bin", "sbin", "usr"] and not found.has_directory("sbin")
