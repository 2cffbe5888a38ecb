"""Save and load resources: a fixed table of types, so that a snapshot cannot name code.

RAM and disk mounts include their content. Any other resource is saved as a redacted description (`redaction`) and,
unless it says otherwise, must be passed again on load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from ramet.backends.local.buffers import Blocks
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import Dir, Fifo, File
from ramet.core.paths import ROOT, Path, encode, parse
from ramet.core.resource import Described, Dumpable, How, Layer, Resource
from ramet.core.stat import Attrs, Kind
from ramet.layers.overlay import Overlay
from ramet.native.tree import TreeResource
from ramet.workspace.snapshot.archive import Blob
from ramet.workspace.snapshot.redaction import redact_resource

Plain = dict[str, Any]
Missing = Callable[[str], None]
"""Called with a message about what could not be saved or restored."""


def save_resource(resource: Resource, missing: Missing) -> Plain:
    """Save a resource: its type, whether loading needs an override, and content or redacted config."""
    bare = _innermost(resource)
    if isinstance(bare, Described):
        state = redact_resource(bare)
        if isinstance(bare, Dumpable):
            state["data"] = [[key.hex(), Blob.of(value)] for key, value in bare.dump()]
        return state
    if isinstance(bare, RAMResource):
        return _save_ram(bare)
    if isinstance(bare, TreeResource):
        return _save_ram(bare.as_memory())
    if isinstance(bare, DiskResource):
        return _save_disk(bare, missing)
    return redact_resource(bare)


def _innermost(resource: Resource) -> Resource:
    while isinstance(resource, Layer) and not isinstance(resource, Overlay):
        resource = resource.inner
    return resource


# ---------------------------------------------------------------------------------------------------------- RAM


def _save_ram(ram: RAMResource) -> Plain:
    files: Plain = {}
    dirs: list[str] = []
    fifos: list[str] = []
    links: Plain = {}
    same: Plain = {}
    attrs: Plain = {}
    first: dict[int, str] = {}
    for path, node in ram.fork().dump():
        if isinstance(node, File):
            attrs[path] = [node.mode, node.mtime_ns]
            if isinstance(node, Fifo):
                fifos.append(path)
                continue
            if node.nlink > 1:
                if node.inode in first:
                    same[path] = first[node.inode]
                    continue
                first[node.inode] = path
            files[path] = _ram_blob(node)
        elif isinstance(node, Dir):
            dirs.append(path)
            attrs[path] = [node.mode, node.mtime_ns]
        else:
            links[path] = node.target
    return {
        "type": "ram", "needs_override": False, "redacted_fields": [], "config": {"quota": ram.quota},
        "files": files, "dirs": dirs, "links": links, "hardlinks": same, "attrs": attrs,
        **({"fifos": fifos} if fifos else {}),
    }  # fmt: skip


def _ram_blob(node: File) -> Blob:
    content = node.content
    return Blob(content.size, lambda: content.read(0, None), mode=node.mode, mtime_ns=node.mtime_ns)


def _load_ram(state: Plain, blob: Callable[[object], Blob]) -> RAMResource:
    quota = state.get("config", {}).get("quota")
    if quota is not None and not isinstance(quota, int):
        raise ValueError("the quota of a RAM mount is not a number")
    ram = RAMResource(quota=quota)
    for text in sorted(_strings(state, "dirs")):
        _ensure_parents(ram, parse(text))
        _run_sync(ram.mkdir(parse(text)))
    for text, reference in _mapping(state, "files").items():
        path = parse(text)
        _ensure_parents(ram, path)
        content = Blocks()
        for block in blob(reference).blocks():
            content.append(block)
        ram.put_now(path, content)
    for text, target in _mapping(state, "links").items():
        _ensure_parents(ram, parse(text))
        _run_sync(ram.write(parse(text), encode(_text(target)), How.LINK))
    for text, first in _mapping(state, "hardlinks").items():
        _ensure_parents(ram, parse(text))
        _run_sync(ram.link(parse(_text(first)), parse(text)))
    for text in _strings(state, "fifos"):
        _ensure_parents(ram, parse(text))
        _run_sync(ram.mkfifo(parse(text)))
    for path, attrs in sorted(_attrs(state), reverse=True):
        ram.setattr_now(path, attrs)
    return ram


def _ensure_parents(ram: RAMResource, path: Path) -> None:
    missing: list[Path] = []
    parent = path.parent
    while parent != ROOT:
        try:
            ram.stat_now(parent)
            break
        except FileNotFoundError:
            missing.append(parent)
            parent = parent.parent
    for directory in reversed(missing):
        _run_sync(ram.mkdir(directory))


def _run_sync(act: Any) -> Any:
    """Run a coroutine of a RAM tree, which never suspends."""
    try:
        act.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a RAM tree never waits")


# --------------------------------------------------------------------------------------------------------- disk


def _save_disk(disk: DiskResource, missing: Missing) -> Plain:
    files: Plain = {}
    links: Plain = {}
    attrs: Plain = {}
    dirs: list[str] = []
    folders: list[tuple[str, int, int]] = []
    shown_links: list[tuple[str, str, int]] = []
    pending = [ROOT]
    while pending:
        here = pending.pop()
        for name, stat in sorted(chain.from_iterable(disk.scan_now(here))):
            path = here / name
            mode, mtime_ns = stat.mode or 0, stat.mtime_ns or 0
            if stat.kind is Kind.DIR:
                pending.append(path)
                dirs.append(path)
                folders.append((path[1:], mode, mtime_ns))
            elif stat.kind is Kind.LINK:
                links[path] = stat.target or ""
                if not leads_out(path, stat.target or ""):
                    shown_links.append((path[1:], stat.target or "", mtime_ns))
                continue
            elif stat.kind is Kind.FILE:
                size = stat.size or 0
                files[path] = Blob(size, _disk_blocks(disk, path, size), path[1:], mode, mtime_ns)
            else:
                missing(f"{path}: a {stat.kind.value} cannot be saved")
                continue
            attrs[path] = [mode, mtime_ns]
    return {
        "type": "disk", "needs_override": False, "redacted_fields": [], "config": {}, "files": files, "dirs": dirs,
        "links": links, "attrs": attrs, "__directories": folders, "__links": shown_links,
    }  # fmt: skip


def _disk_blocks(disk: DiskResource, path: Path, size: int) -> Callable[[], Iterator[bytes]]:
    # Each file is opened relative to the directory descriptor, like the listing.
    def blocks() -> Iterator[bytes]:
        handle = disk.open(path, write=False)
        try:
            at = 0
            while at < size and (block := handle.pread(at, min(1 << 20, size - at))):
                at += len(block)
                yield block
        finally:
            handle.close()

    return blocks


def leads_out(path: Path, target: str) -> bool:
    """Return whether a link leads outside of an extracted tar."""
    if target.startswith("/"):
        return True
    depth = len(path.parts) - 1
    for part in target.split("/"):
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            return True
    return False


def _load_disk(state: Plain, blob: Callable[[object], Blob], root: str | None = None) -> DiskResource:
    """Load a tree into a new temporary directory, or into `root` without removing its content."""
    disk = DiskResource(root, create=True) if root is not None else DiskResource.temporary()
    fill_disk(disk, state, blob)
    return disk


def fill_disk(disk: DiskResource, state: Plain, blob: Callable[[object], Blob]) -> None:
    for text in sorted(_strings(state, "dirs")):
        _disk_dirs(disk, parse(text))
    for text, reference in _mapping(state, "files").items():
        path = parse(text)
        _disk_dirs(disk, path.parent)
        _run_sync(disk.write(path, b""))
        handle = disk.open(path, write=True)
        try:
            at = 0
            for block in blob(reference).blocks():
                at += handle.pwrite(at, block)
        finally:
            handle.close()
    for text, target in _mapping(state, "links").items():
        _disk_dirs(disk, parse(text).parent)
        _run_sync(disk.write(parse(text), encode(_text(target)), How.LINK))
    for path, attrs in sorted(_attrs(state), reverse=True):
        _run_sync(disk.setattr(path, attrs))


def _disk_dirs(disk: DiskResource, path: Path) -> None:
    if path == ROOT:
        return
    try:
        disk.stat_now(path)
    except FileNotFoundError:
        _disk_dirs(disk, path.parent)
        _run_sync(disk.mkdir(path))


def restore_data(resource: Resource, state: Plain, blob: Callable[[object], Blob]) -> None:
    """Restore the saved content of a remote resource."""
    items = state.get("data", [])
    if not isinstance(items, list) or not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise ValueError("the data of a mount is malformed")
    if items and isinstance(resource, Dumpable):
        resource.restore((bytes.fromhex(_text(key)), blob(reference).read()) for key, reference in items)


def _load_ssh(state: Plain, blob: Callable[[object], Blob]) -> Resource:
    """An SSH mount with the user's own keys and known hosts: what a snapshot names can be anyone's."""
    from ramet.backends.remote.ssh import SSHConfig, SSHResource

    config = _mapping(state, "config")
    username, port = config.get("username"), config.get("port", 22)
    if not isinstance(port, int) or not (username is None or isinstance(username, str)):
        raise ValueError("the configuration of an SSH mount is malformed")
    root = _text(config.get("root", "."))
    return SSHResource(SSHConfig(host=_text(config.get("host")), port=port, username=username, root=root))


def _load_paperclip(state: Plain, blob: Callable[[object], Blob]) -> Resource:
    """Paperclip at its own address, where alone its credentials may go."""
    from ramet.backends.services.paperclip import HOME, PaperclipConfig, PaperclipResource

    config = _mapping(state, "config")
    if config.get("base_url", HOME) != HOME:
        raise ValueError("a Paperclip mount with another address must be passed in resources=")
    limit = config.get("default_limit", 500)
    if not isinstance(limit, int):
        raise ValueError("the configuration of a Paperclip mount is malformed")
    path = _text(config.get("credentials_path", "~/.paperclip/credentials.json"))
    return PaperclipResource(PaperclipConfig(credentials_path=path, default_limit=limit))


LOADERS: Final[Mapping[str, Callable[[Plain, Callable[[object], Blob]], Resource]]] = {
    "ram": _load_ram,
    "disk": _load_disk,
    "ssh": _load_ssh,
    "paperclip": _load_paperclip,
}
"""Types that a snapshot may load, without contacting anything; any other resource is passed by the caller."""


# -------------------------------------------------------------------------------------- reading untrusted data


def _mapping(state: Plain, key: str) -> dict[str, Any]:
    found = state.get(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"{key!r} of a mount is not an object")
    return found


def _strings(state: Plain, key: str) -> list[str]:
    found = state.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise ValueError(f"{key!r} of a mount is not a list of paths")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a path or link target is not text")
    return value


def _attrs(state: Plain) -> list[tuple[Path, Attrs]]:
    found: list[tuple[Path, Attrs]] = []
    for text, pair in _mapping(state, "attrs").items():
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(item) is int for item in pair)):
            raise ValueError(f"the attributes of {text!r} are not [mode, mtime_ns]")
        mode, mtime_ns = pair
        if not (0 <= mode <= 0o7777 and abs(mtime_ns) < 1 << 63):
            raise ValueError(f"the attributes of {text!r} are out of range")
        found.append((parse(text), Attrs(mode=mode, mtime_ns=mtime_ns)))
    return found
