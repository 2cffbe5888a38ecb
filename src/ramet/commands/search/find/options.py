"""Options inside a find expression: always true, they change the settings."""

from __future__ import annotations

from ramet.commands.framework.command import UsageError, quote
from ramet.commands.search.find.nodes import TRUE, Node
from ramet.commands.search.find.words import Words


class FindOptions(Words):
    """The options of an expression."""

    def p_maxdepth(self) -> Node:
        self.settings.max_depth = self.whole("-maxdepth")
        return TRUE

    def p_mindepth(self) -> Node:
        self.settings.min_depth = self.whole("-mindepth")
        return TRUE

    def whole(self, option: str) -> int:
        text = self.argument(option)
        if not text.isdigit():
            raise UsageError(f"Expected a positive decimal integer argument to {option}, but got {quote(text)}")
        return int(text)

    def p_depth(self) -> Node:
        self.settings.depth_first = True
        return TRUE

    p_d = p_depth

    def p_daystart(self) -> Node:
        self.settings.day_start = True
        return TRUE

    def p_follow(self) -> Node:
        self.settings.follow = "L"
        return TRUE

    def p_xdev(self) -> Node:
        self.settings.one_system = True
        return TRUE

    p_mount = p_xdev

    def p_files0_from(self) -> Node:
        self.settings.files0 = self.argument("-files0-from")
        return TRUE

    def p_noleaf(self) -> Node:
        return TRUE

    p_warn = p_nowarn = p_ignore_readdir_race = p_noignore_readdir_race = p_noleaf
