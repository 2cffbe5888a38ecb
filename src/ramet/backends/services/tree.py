"""`Service`: a file tree made from a table of nodes, the base of every service.

Rules that this file keeps:
- The listing of a collection carries the stats of its entries: no request per entry.
- The id in a name decides, not the title: `42__Old title` is still issue 42.
- What was listed is remembered for `ttl` seconds, at most `MOST_ITEMS` entries in all, and forgotten after a change.
- An edit is checked against what the reader saw: if the service has changed it since, the edit is ESTALE.
"""

from __future__ import annotations

import errno
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import LARGEST_EDIT, bounded, digest
from ramet.backends.services.nodes import Asked, Collection, Item, Node, Place, Point, Rendered, Subtree
from ramet.backends.services.rest import patiently
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap, Data, Description, How, Letter
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing

MOST_ITEMS: Final = 50_000
"""Entries of collections that one mount remembers."""
NOT_HERE: Final = "Operation not permitted"


class _Found(NamedTuple):
    point: Point
    place: Place
    trail: str
    """The path with keys in place of names, under which listings are remembered."""
    stat: Stat | None = None
    """The stat of the item that the path ends at."""
    inner: Path | None = None
    """The path inside a subtree."""

    @property
    def file(self) -> Rendered | Asked | None:
        """The file at the path; items may be files or directories."""
        return None if self.stat is not None and self.stat.kind is Kind.DIR else self.point.file


@dataclass
class _Listing:
    items: dict[str, Item] = field(default_factory=dict)
    until: float = 0.0
    whole: bool = False


class Service:
    """A resource over a table of nodes; a subclass gives `nodes` and the functions that they name.

    The private methods of this class have two words and more, so that a subclass can call its own `_edit` or `_items`.
    """

    config: ServiceConfig

    def __init__(self, config: ServiceConfig, nodes: Sequence[Node]) -> None:
        self.config = config
        self._top = Point()
        for node in nodes:
            self._top.add(node)
        for node in nodes:
            if isinstance(node, Collection) and node.like:
                self._top.at(node.at).item = self._top.at(node.like).item
        self._listings: OrderedDict[str, _Listing] = OrderedDict()
        self._item_count = 0
        self._shown: OrderedDict[str, str] = OrderedDict()
        """The digest of what readers saw last of each editable file."""

    @property
    def caps(self) -> Cap:
        if not self.config.writable:
            return Cap.READ
        return Cap.WRITE | Cap.APPEND | Cap.CREATE | Cap.RENAME | Cap.PRECONDITIONS | Cap.ON_CLOSE

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"

    def describe(self) -> Description:
        return self.config.describe()

    # ---------------------------------------------------------------------------------------------- finding

    async def _find(self, path: Path) -> _Found:
        point, trail, stat = self._top, "", None
        items: tuple[Item, ...] = ()
        here = ROOT
        for number, name in enumerate(path.parts):
            if point.subtree is not None:
                inner = Path("/" + "/".join(path.parts[number:]))
                return _Found(point, Place(path, items), trail, None, inner)
            if point.file is not None if stat is None else stat.kind is not Kind.DIR:
                raise fail(errno.ENOTDIR, path)
            below = point.names.get(name)
            if below is None:
                if point.collection is None or point.item is None:
                    raise fail(errno.ENOENT, path)
                item = await self._find_item(point.collection, Place(here, items), trail, name, path)
                items, stat, below = (*items, item), item.stat, point.item
                trail = f"{trail}/{item.key}"
            else:
                trail, stat = f"{trail}/{name}", None
            point, here = below, here / name
        return _Found(point, Place(path, items), trail, stat, ROOT if point.subtree is not None else None)

    async def _find_item(self, collection: Collection, place: Place, trail: str, name: str, path: Path) -> Item:
        key = collection.key(name)
        if key is None:
            raise fail(errno.ENOENT, path)
        listing = self._fresh_listing(trail)
        known = listing.items.get(key) if listing is not None else None
        if known is not None:
            return known
        item = await collection.item(place._replace(path=path), key)
        if listing is None:
            listing = self._listings[trail] = _Listing(until=self._trusted_until())
        self._remember_item(listing, item)
        return item

    def _trusted_until(self) -> float:
        return time.monotonic() + self.config.ttl

    def _fresh_listing(self, trail: str) -> _Listing | None:
        listing = self._listings.get(trail)
        if listing is None:
            return None
        if listing.until < time.monotonic():
            self._drop_listing(trail)
            return None
        self._listings.move_to_end(trail)
        return listing

    def _remember_item(self, listing: _Listing, item: Item) -> None:
        self._item_count += item.key not in listing.items
        listing.items[item.key] = item
        while self._item_count > MOST_ITEMS:
            self._drop_listing(next(iter(self._listings)))

    def _drop_listing(self, trail: str) -> None:
        self._item_count -= len(self._listings.pop(trail).items)

    def forget(self, path: Path = ROOT) -> None:
        """Ask the service anew; cheap where it answers conditional requests."""
        self._listings.clear()
        self._item_count = 0

    # ---------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        found = await self._find(path)
        if found.inner is not None and found.point.subtree is not None:
            return await found.point.subtree.resource.stat(found.inner)
        return self._stat_of(found)

    def _stat_of(self, found: _Found) -> Stat:
        if found.stat is not None:
            return found.stat
        if isinstance(found.file, Rendered):
            content = found.file.render(found.place)
            return self._stat_below(found)._replace(size=len(content), version=digest(content))
        if isinstance(found.file, Asked):
            return self._stat_below(found) if found.file.stat is None else found.file.stat(found.place)
        return Stat(Kind.DIR, ttl=self.config.ttl)

    def _stat_below(self, found: _Found) -> Stat:
        """A file of an item: as old as that, and trusted for as long."""
        if not found.place.items:
            return Stat(Kind.FILE, ttl=self.config.ttl)
        above = found.place.items[-1].stat
        return Stat(Kind.FILE, None, above.mtime_ns, None, above.ttl)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        found = await self._find(path)
        if found.inner is not None and found.point.subtree is not None:
            async with closing(found.point.subtree.resource.scan(found.inner)) as entries:
                async for entry in entries:
                    yield entry
            return
        if self._stat_of(found).kind is not Kind.DIR:
            raise fail(errno.ENOTDIR, path)
        for name, point in found.point.names.items():
            below = _Found(point, found.place._replace(path=path / name), f"{found.trail}/{name}")
            yield name, await point.subtree.resource.stat(ROOT) if point.subtree is not None else self._stat_of(below)
        if found.point.collection is not None:
            async with closing(self._listed_items(found.point.collection, found)) as items:
                async for item in items:
                    yield item.name, item.stat

    async def _listed_items(self, collection: Collection, found: _Found) -> AsyncIterator[Item]:
        known = self._fresh_listing(found.trail)
        if known is not None and known.whole:
            for item in tuple(known.items.values()):
                yield item
            return
        listing = _Listing(until=self._trusted_until())
        if known is not None:
            self._drop_listing(found.trail)
        self._listings[found.trail] = listing
        seen: set[str] = set()
        async with closing(collection.items(found.place)) as items:
            async for item in items:
                if item.key in seen:
                    continue  # entries shift between pages while they are read
                seen.add(item.key)
                # A listing that was dropped meanwhile, since it is too large or something changed, is not remembered.
                if self._listings.get(found.trail) is listing:
                    self._remember_item(listing, item)
                yield item
        listing.whole = True

    # ---------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """The whole content; a layer cuts ranges out of it."""
        found = await self._find(path)
        if found.inner is not None and found.point.subtree is not None:
            blocks = found.point.subtree.resource.read(found.inner)
        elif found.file is None:
            raise fail(errno.EISDIR, path)
        elif isinstance(found.file, Rendered) or found.file.edit is not None:
            content = await _content(found.file, found.place)
            if found.file.edit is not None:
                self._remember_shown(found.trail, content)
            yield content
            return
        else:
            blocks = found.file.read(found.place)
        async with closing(blocks) as stream:
            async for block in stream:
                yield block

    def _remember_shown(self, trail: str, content: bytes) -> None:
        self._shown.pop(trail, None)
        self._shown[trail] = digest(content)
        while len(self._shown) > 1024:
            self._shown.popitem(last=False)

    # --------------------------------------------------------------------------------------------- changing

    def _check_writable(self, path: Path) -> None:
        self.config.check_writable(path)

    async def _find_subtree(self, path: Path) -> tuple[Subtree, Path] | None:
        try:
            found = await self._find(path)
        except FileNotFoundError:
            return None
        return None if found.point.subtree is None or found.inner is None else (found.point.subtree, found.inner)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self._check_writable(path)
        try:
            found = await self._find(path)
        except FileNotFoundError:
            above = await self._find(path.parent)
            if above.point.collection is None or above.point.collection.create is None:
                raise fail(errno.EPERM, path, f"{NOT_HERE}: only the service makes files here; see README.md") from None
            await above.point.collection.create(above.place, path.name, await bounded(data, path))
            self.forget(path)
            return await self.stat(path)
        if found.inner is not None and found.point.subtree is not None:
            return await found.point.subtree.resource.write(found.inner, data, how, at=at, if_version=if_version)
        if how is How.CREATE or how is How.LINK:
            raise fail(errno.EEXIST, path)
        node = found.file
        if node is None:
            raise fail(errno.EISDIR, path)
        if node.edit is None:
            hint = (
                "to say something, use post"
                if (await self._find(path.parent)).point.inbox is not None
                else "see README.md"
            )
            raise fail(errno.EROFS, path, f"Read-only file system: {hint}")
        content = await bounded(data, path)
        if how is How.APPEND and isinstance(node, Asked) and node.append is not None and if_version is None:
            await node.append(found.place, content)
        else:
            await self._apply_edit(node, found, content, how, if_version)
        self.forget(path)
        try:
            return await self.stat(path)
        except FileNotFoundError:  # an edit may take a thing to another place, or out of sight
            return Stat(Kind.FILE, len(content))

    async def _apply_edit(
        self, node: Rendered | Asked, found: _Found, data: bytes, how: How, if_version: str | None
    ) -> None:
        assert node.edit is not None
        place = found.place if node.fresh is None else await node.fresh(found.place)
        current = await _content(node, place)
        version = digest(current)
        seen = self._shown.get(found.trail, version)
        if isinstance(node, Asked) and node.stat is not None:
            version = node.stat(place).version or version
        if version != if_version if if_version is not None else seen != digest(current):
            self._shown.pop(found.trail, None)
            self.forget(found.place.path)
            words = "Stale file handle: the service has changed it since you read it; read it again"
            raise fail(errno.ESTALE, found.place.path, words)
        await node.edit(place, current, current + data if how is How.APPEND else data)
        self._shown.pop(found.trail, None)

    async def mkdir(self, path: Path) -> None:
        self._check_writable(path)
        inside = await self._find_subtree(path)
        if inside is None:
            raise fail(errno.EPERM, path, f"{NOT_HERE}: only the service makes directories here")
        await inside[0].resource.mkdir(inside[1])

    async def remove(self, path: Path) -> None:
        self._check_writable(path)
        found = await self._find(path)
        if found.point.subtree is not None and found.inner not in (None, ROOT):
            assert found.inner is not None
            await found.point.subtree.resource.remove(found.inner)
            return
        above = await self._find(path.parent)
        if found.stat is None or above.point.collection is None or above.point.collection.remove is None:
            raise fail(errno.EPERM, path, f"{NOT_HERE}: the service has no removal for this; see README.md")
        await above.point.collection.remove(found.place)
        self.forget(path)

    async def rename(self, src: Path, dst: Path) -> None:
        self._check_writable(src)
        found = await self._find(src)
        above = await self._find(dst.parent)
        if found.point.subtree is not None or above.point.subtree is not None:
            await self._rename_inside(found, src, dst)
            return
        collection = (await self._find(src.parent)).point.collection
        if found.stat is None or collection is None or collection.move is None:
            raise fail(errno.EPERM, src, f"{NOT_HERE}: the service names its things itself")
        if above.point.collection is not collection:
            raise fail(errno.EPERM, dst, f"{NOT_HERE}: the service cannot move it there")
        if collection.key(dst.name) not in (None, found.place.items[-1].key):
            raise fail(errno.EEXIST, dst)
        await collection.move(found.place, above.place, dst.name)
        self.forget(src)

    async def _rename_inside(self, found: _Found, src: Path, dst: Path) -> None:
        other = await self._find_subtree(dst)
        if (
            other is None
            or found.inner is None
            or other[0] is not found.point.subtree
            or ROOT in (found.inner, other[1])
        ):
            raise fail(errno.EXDEV, src)
        await other[0].resource.rename(found.inner, other[1])

    async def copy(self, src: Path, dst: Path) -> None:
        self._check_writable(dst)
        raise fail(errno.ENOTSUP, dst)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        self._check_writable(path)
        inside = await self._find_subtree(path)
        if inside is None:
            raise fail(errno.ENOTSUP, path)
        await inside[0].resource.setattr(inside[1], attrs)

    # ---------------------------------------------------------------------------------------------- posting

    async def post(self, letter: Letter) -> str:
        """Send a message to the inbox at `letter.place`, once."""
        path = letter.place or ROOT
        self._check_writable(path)
        found = await self._find(path)
        inbox = found.point.inbox
        if inbox is None and (found.file is not None or (found.stat is not None and found.stat.kind is Kind.FILE)):
            found = await self._find(path.parent)
            inbox = found.point.inbox
        if inbox is None:
            raise fail(errno.ENOTSUP, path, "nothing can be posted here; see README.md")
        for name, content in (("the text", letter.body), *letter.attachments):
            if len(content) > LARGEST_EDIT:
                raise fail(errno.EFBIG, path, f"{name} is larger than {LARGEST_EDIT >> 20} MiB; nothing was posted")
        send, place = inbox.send, found.place
        try:
            return await patiently(lambda: send(place, letter))
        finally:
            self.forget(path)

    async def close(self) -> None:
        self.forget()


async def _content(node: Rendered | Asked, place: Place) -> bytes:
    """The whole of a file that can be edited."""
    if isinstance(node, Rendered):
        return node.render(place)
    async with closing(node.read(place)) as blocks:
        return b"".join([block async for block in blocks])
