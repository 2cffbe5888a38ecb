"""Walk the files of a revision: all mounts as one tree, without hidden paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ramet.core.errors import RametError
from ramet.core.paths import decode as decode_name
from ramet.store.model import trees
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import Revision
from ramet.store.model.trees import DIR, Node

Read = Callable[[bytes], bytes]


def walk_tree(read: Read, tree: TreeId, where: str = "") -> Iterator[tuple[str, Node]]:
    """Yield every path below a tree with its node, directories first. Memory grows with the depth."""
    stack = [iter(_children(read, tree, where))]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        yield found
        if found[1].kind == DIR:
            stack.append(iter(_children(read, found[1].tree, found[0])))


def _children(read: Read, tree: TreeId, where: str) -> list[tuple[str, Node]]:
    return [(f"{where}/{decode_name(node.name)}", node) for node in trees.decode(read(tree))]


def walk(read: Read, revision: Revision) -> Iterator[tuple[str, Node]]:
    """Yield every visible path of a revision with its node, mount by mount."""
    for mount in sorted(revision.mounts, key=lambda m: m.prefix):
        if mount.tree is None:
            continue
        top = mount.prefix.rstrip("/")
        hidden = hidden_paths(revision, mount.prefix)
        for path, node in walk_tree(read, mount.tree, top):
            if not hidden(path):
                yield path, node


def hidden_paths(revision: Revision, prefix: str) -> Callable[[str], bool]:
    """Return a predicate for paths of one mount that another mount hides."""
    top = prefix.rstrip("/") + "/"
    above = tuple(m.prefix for m in revision.mounts if m.prefix != prefix and m.prefix.startswith(top))
    if not above:
        return lambda _: False
    below = tuple(other + "/" for other in above)
    return lambda path: path.startswith(below)


def find_node(read: Read, revision: Revision, path: str) -> Node | None:
    """Return the node at an absolute path of a revision; None when there is none."""
    for mount in sorted(revision.mounts, key=lambda m: len(m.prefix), reverse=True):
        top = mount.prefix.rstrip("/")
        if not path.startswith(top + "/"):
            continue
        if mount.tree is None:
            return None
        return _below(read, mount.tree, path[len(top) + 1 :].split("/"))
    return None


def _below(read: Read, tree: TreeId, parts: list[str]) -> Node | None:
    for number, part in enumerate(parts):
        wanted = part.encode("utf-8", "surrogateescape")
        found = next((node for node in trees.decode(read(tree)) if node.name == wanted), None)
        if found is None or number == len(parts) - 1:
            return found
        if found.kind != DIR:
            return None
        tree = found.tree
    return None


def entries(read: Read, revision: Revision, path: str) -> list[Node]:
    """Return the entries of a directory by name, the mounts in it too; RametError when there is no such directory."""
    top = path.rstrip("/") + "/"
    mount = next((one for one in revision.mounts if one.prefix.rstrip("/") + "/" == top), None)
    node = None if mount is not None else find_node(read, revision, path)
    if node is not None and node.kind != DIR:
        raise RametError("not_found", f"{path} of {revision.name} is not a directory", "list its parent directory")
    tree = mount.tree if mount is not None else None if node is None else node.tree
    inside = [one.prefix[len(top) :] for one in revision.mounts if one.prefix.startswith(top) and one is not mount]
    if mount is None and node is None and not inside:
        raise no_such_path(revision, path)
    if mount is not None and tree is None:
        raise RametError(
            "unsupported", f"cannot list {path} of {revision.name}: its files are not in the store",
            "Open the workspace to list it.",
        )  # fmt: skip
    found = {} if tree is None else {one.name: one for one in trees.decode(read(tree))}
    for name in (one.partition("/")[0].encode("utf-8", "surrogateescape") for one in inside):
        if name not in found or found[name].kind != DIR:
            found[name] = Node(name, DIR, 0o755, 0, 0, b"")
    return [found[name] for name in sorted(found)]


class NodeFinder:
    """Finds many nodes of revisions, and decodes each directory once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._entries: dict[bytes, dict[bytes, Node]] = {}

    def find(self, revision: Revision, path: str) -> Node | None:
        """As `find_node`."""
        for mount in sorted(revision.mounts, key=lambda m: len(m.prefix), reverse=True):
            top = mount.prefix.rstrip("/")
            if path.startswith(top + "/"):
                return None if mount.tree is None else self._below(mount.tree, path[len(top) + 1 :].split("/"))
        return None

    def _below(self, tree: TreeId, parts: list[str]) -> Node | None:
        found: Node | None = None
        for number, part in enumerate(parts):
            if tree not in self._entries:
                self._entries[tree] = {node.name: node for node in trees.decode(self._read(tree))}
            found = self._entries[tree].get(part.encode("utf-8", "surrogateescape"))
            if found is None or (number < len(parts) - 1 and found.kind != DIR):
                return None
            tree = found.tree if found.kind == DIR else tree
        return found


def content(read: Read, node: Node) -> Iterator[bytes]:
    """Yield the content of a file, chunk by chunk."""
    for identity in node.chunks:
        yield read(identity)


def no_such_path(revision: Revision, path: str) -> RametError:
    return RametError("not_found", f"{path} is not in {revision.name}", "list its directory to see what there is")


def not_a_file(revision: Revision, path: str) -> RametError:
    return RametError("not_found", f"{path} of {revision.name} is not a file", "list it, or name a file below it")
