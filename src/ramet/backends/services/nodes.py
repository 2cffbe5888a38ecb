"""The table of a service: which files and directories there are, and the functions that fill them.

`tree` makes a resource out of such nodes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ramet.core.paths import Path
from ramet.core.resource import Letter, Resource
from ramet.core.stat import Stat


class Item(NamedTuple):
    """An entry of a collection: its id, its name, and what the service said about it."""

    key: str
    name: str
    data: Any
    stat: Stat


class Place(NamedTuple):
    """A path, and the items that its variable segments stand for, outermost first."""

    path: Path
    items: tuple[Item, ...] = ()

    @property
    def data(self) -> Any:
        """What the service said about the innermost item."""
        return self.items[-1].data


@dataclass(frozen=True)
class Rendered:
    """A file made from what is known already: its size and version are known without a request."""

    at: str
    render: Callable[[Place], bytes]
    edit: Callable[[Place, bytes, bytes], Awaitable[None]] | None = None
    """Send what differs between the content that the reader saw and the new one."""
    fresh: Callable[[Place], Awaitable[Place]] | None = None
    """Ask the service for the item as it is now, before an edit."""


@dataclass(frozen=True)
class Asked:
    """A file whose content is asked for when it is read."""

    at: str
    read: Callable[[Place], AsyncIterator[bytes]]
    stat: Callable[[Place], Stat] | None = None
    edit: Callable[[Place, bytes, bytes], Awaitable[None]] | None = None
    """As of `Rendered`."""
    fresh: Callable[[Place], Awaitable[Place]] | None = None
    append: Callable[[Place, bytes], Awaitable[None]] | None = None
    """Add to the end without a look at what is there."""


@dataclass(frozen=True)
class Collection:
    """A directory of items. A `*` in the path of another node stands for one of them."""

    at: str
    items: Callable[[Place], AsyncIterator[Item]]
    item: Callable[[Place, str], Awaitable[Item]]
    """The item with this key; ENOENT if there is none."""
    key: Callable[[str], str | None]
    """The key in a name; None for a name that no item can have."""
    remove: Callable[[Place], Awaitable[None]] | None = None
    create: Callable[[Place, str, bytes], Awaitable[None]] | None = None
    """Make an item from a new file of this name; `item` must find that name afterwards."""
    move: Callable[[Place, Place, str], Awaitable[None]] | None = None
    """Move an item to another directory of its kind, or give it another title: the item, the directory, the name."""
    like: str = ""
    """The path of another collection whose items have the same files, such as pages below pages."""


@dataclass(frozen=True)
class Inbox:
    """A directory or item that takes messages: `post PATH`."""

    at: str
    send: Callable[[Place, Letter], Awaitable[str]]


@dataclass(frozen=True)
class Subtree:
    """A directory whose tree is a separate resource."""

    at: str
    resource: Resource


Node = Rendered | Asked | Collection | Inbox | Subtree


@dataclass
class Point:
    """A segment of the paths of a table, with the nodes that stand there."""

    names: dict[str, Point] = field(default_factory=dict)
    item: Point | None = None
    collection: Collection | None = None
    file: Rendered | Asked | None = None
    inbox: Inbox | None = None
    subtree: Subtree | None = None

    def at(self, path: str) -> Point:
        at = self
        for segment in path.strip("/").split("/") if path != "/" else ():
            if segment == "*":
                at.item = at.item or Point()
                at = at.item
            else:
                at = at.names.setdefault(segment, Point())
        return at

    def add(self, node: Node) -> None:
        at = self.at(node.at)
        match node:
            case Collection():
                at.collection = node
                at.item = at.item or Point()
            case Inbox():
                at.inbox = node
            case Subtree():
                at.subtree = node
            case _:
                at.file = node
