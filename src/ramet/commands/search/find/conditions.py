"""Tests of find: names, types, owners, modes, sizes and times."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from datetime import datetime, timedelta
from functools import partial
from math import inf

from ramet.commands.framework.command import UsageError, quote
from ramet.commands.framework.file_modes import BadMode, change_mode, mode_of, nlink_of
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.commands.search.find.nodes import TRUE, Found, Node
from ramet.commands.search.find.words import Words
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.stat import Kind
from ramet.text.glob import fnmatch
from ramet.text.strftime import EPOCH, NANO, at, zone_of

_KINDS = {
    "f": Kind.FILE,
    "d": Kind.DIR,
    "l": Kind.LINK,
    "p": Kind.FIFO,
    "s": Kind.SOCKET,
    "c": Kind.DEVICE,
    "b": None,
    "D": None,
}
_SIZES = {"": 512, "b": 512, "c": 1, "w": 2, "k": 1024, "M": 1024**2, "G": 1024**3}
TIMES = {"atime": 86400, "ctime": 86400, "mtime": 86400, "amin": 60, "cmin": 60, "mmin": 60}


_ANY_OF_NONE = (
    "warning: you have specified a mode pattern {} (which is equivalent to /000). The meaning of -perm /000 has now "
    "been changed to be consistent with -perm -000; that is, while it used to match no files, it now matches all files."
)


class Conditions(Words):
    """The tests of an expression."""

    # ----------------------------------------------------------------------------------------------------- names

    def p_name(self) -> Node:
        pattern = self.argument("-name")
        if not any(c in pattern for c in "*?[\\"):
            return Node(lambda f: f.name == pattern)
        return Node(lambda f: fnmatch(f.name, pattern))

    def p_iname(self) -> Node:
        pattern = self.argument("-iname")
        return Node(lambda f: fnmatch(f.name, pattern, icase=True))

    def p_path(self, icase: bool = False, option: str = "-path") -> Node:
        pattern = self.argument(option)
        return Node(lambda f: fnmatch(f.word, pattern, icase=icase))

    def p_wholename(self) -> Node:
        return self.p_path(option="-wholename")

    def p_ipath(self) -> Node:
        return self.p_path(True, "-ipath")

    def p_iwholename(self) -> Node:
        return self.p_path(True, "-iwholename")

    def p_lname(self, icase: bool = False) -> Node:
        pattern = self.argument("-ilname" if icase else "-lname")
        return Node(lambda f: f.stat.kind is Kind.LINK and fnmatch(f.stat.target or "", pattern, icase=icase))

    def p_ilname(self) -> Node:
        return self.p_lname(True)

    async def p_regex(self, icase: bool = False) -> Node:
        from ramet.commands.framework.posix_regex import offload_long
        from ramet.patterns import POSIX_BASIC, POSIX_EXTENDED, PatternError, compile

        pattern = self.argument("-iregex" if icase else "-regex")
        kind = self.settings.regex_type
        basic = kind in ("posix-basic", "ed", "grep", "sed", "posix-minimal-basic")
        if kind in ("emacs", "findutils-default"):
            pattern = await offload_long(self.proc, (pattern,), partial(_from_emacs, pattern))
        try:
            dialect = POSIX_BASIC if basic else POSIX_EXTENDED
            matcher = await offload_long(self.proc, (pattern,), partial(compile, encode(pattern), dialect, icase=icase))
        except PatternError as error:
            raise UsageError(f"failed to compile regular expression '{pattern}': {error}") from None

        def test(found: Found) -> bool:
            raw = encode(found.word)
            return matcher.search(raw) == (0, len(raw))

        return Node(test)

    async def p_iregex(self) -> Node:
        return await self.p_regex(True)

    def p_regextype(self) -> Node:
        kind = self.argument("-regextype")
        known = (
            "findutils-default",
            "ed",
            "emacs",
            "gnu-awk",
            "grep",
            "posix-awk",
            "awk",
            "posix-basic",
            "posix-egrep",
            "egrep",
            "posix-extended",
            "posix-minimal-basic",
            "sed",
        )
        if kind not in known:
            listed = ", ".join(f"'{k}'" for k in known)
            raise UsageError(f"Unknown regular expression type {quote(kind)}; valid types are {listed}.")
        self.settings.regex_type = kind
        return TRUE

    # ----------------------------------------------------------------------------------------------------- kinds

    def p_type(self, option: str = "-type") -> Node:
        text = self.argument(option)
        kinds: set[Kind] = set()
        for i, letter in enumerate(text.split(",")):
            if not letter:
                raise UsageError(
                    f"Last file type in list argument to {option} is missing, i.e., list is ending on: ','"
                    if i
                    else f"Arguments to {option} should contain at least one letter"
                )
            if len(letter) > 1:
                raise UsageError(f"Must separate multiple arguments to {option} using: ','")
            if letter not in _KINDS:
                raise UsageError(f"Unknown argument to {option}: {letter}")
            kind = _KINDS[letter]
            if kind is not None:
                kinds.add(kind)
        if option == "-xtype":
            return self.xtype(kinds)
        if len(kinds) == 1:
            only = next(iter(kinds))
            return Node(lambda f: f.stat.kind is only)
        return Node(lambda f: f.stat.kind in kinds)

    def xtype(self, kinds: set[Kind]) -> Node:
        fs, settings = self.proc.fs, self.settings

        async def later(found: Found) -> bool:
            if settings.follow == "L":  # with -L, the other tests follow links and this one does not
                return (await fs.stat(found.path)).kind in kinds
            if found.stat.kind is not Kind.LINK:
                return found.stat.kind in kinds
            try:
                return (await fs.stat(found.path, follow=True)).kind in kinds
            except OSError:
                return Kind.LINK in kinds

        return Node(None, later)

    def p_xtype(self) -> Node:
        return self.p_type("-xtype")

    def p_size(self) -> Node:
        text = self.argument("-size")
        found = re.fullmatch(r"([+-]?)(\d+)([bcwkMG]?)", text)
        if found is None:
            raise UsageError(
                f"Invalid argument `{text}' to -size"
                if not re.fullmatch(r"[+-]?\d*\D", text)
                else f"invalid -size type `{text[-1]}'"
            )
        unit, wanted, sign = _SIZES[found[3]], int(found[2]), found[1]

        def units(f: Found) -> int:
            size = (
                4096
                if f.stat.kind is Kind.DIR
                else len(encode(f.stat.target or ""))
                if f.stat.kind is Kind.LINK
                else f.stat.size or 0
            )
            return -(-size // unit)

        if sign == "+":
            return Node(lambda f: units(f) > wanted)
        return Node(lambda f: units(f) < wanted) if sign == "-" else Node(lambda f: units(f) == wanted)

    def p_empty(self) -> Node:
        fs = self.proc.fs

        async def later(found: Found) -> bool:
            if found.stat.kind is Kind.FILE:
                return found.stat.size == 0
            if found.stat.kind is Kind.DIR:
                async for _ in fs.scan(found.path):
                    return False
                return True
            return False

        return Node(None, later)

    def p_links(self) -> Node:
        return self.compare("-links", lambda f: nlink_of(f.stat), self.argument("-links"))

    def p_inum(self) -> Node:
        return self.compare("-inum", lambda f: f.stat.inode or 0, self.argument("-inum"))

    def p_samefile(self) -> Awaitable[Node]:
        word = self.argument("-samefile")

        async def make() -> Node:
            try:
                stat = await self.proc.fs.stat(self.proc.path(word), follow=self.settings.follow != "P")
                path = self.proc.path(word)
            except OSError as error:
                raise UsageError(f"{quote(word)}: {reason(error)}") from None
            return Node(lambda f: f.path == path or (stat.inode is not None and f.stat.inode == stat.inode))

        return make()

    def p_true(self) -> Node:
        return TRUE

    def p_false(self) -> Node:
        return Node(lambda f: False)

    def p_fstype(self) -> Node:
        wanted = self.argument("-fstype")
        return Node(lambda f: wanted == "ramet")

    # ------------------------------------------------------------------------------------------ owners and modes

    def p_perm(self) -> Node:
        text = self.argument("-perm")
        how, spec = (text[0], text[1:]) if text[:1] in ("-", "/") else ("", text)
        try:
            if re.match(r"\+[0-7]", text):
                raise BadMode  # the old spelling of `/MODE`
            bits = change_mode(spec, 0, False, 0)
        except BadMode:
            raise UsageError(f"invalid mode {quote(text)}") from None
        if how == "-":
            return Node(lambda f: mode_of(f.stat) & bits == bits)
        if how == "/":
            if bits == 0:
                self.proc.complain(_ANY_OF_NONE.format(text))
            return Node(lambda f: bits == 0 or bool(mode_of(f.stat) & bits))
        return Node(lambda f: mode_of(f.stat) == bits)

    def access(self, bit: int) -> Node:
        fs = self.proc.fs

        async def later(found: Found) -> bool:
            stat = found.stat
            if stat.kind is Kind.LINK:
                # The target of the link counts.
                try:
                    stat = await fs.stat(found.path, follow=True)
                except OSError:
                    return False
            return bool(mode_of(stat) & bit << 6)

        return Node(None, later)

    def p_readable(self) -> Node:
        return self.access(4)

    def p_writable(self) -> Node:
        return self.access(2)

    def p_executable(self) -> Node:
        return self.access(1)

    def p_user(self) -> Node:
        wanted = self.argument("-user")
        user = self.proc.user
        if wanted not in (user.name, "root") and not wanted.isdigit():
            raise UsageError(f"{quote(wanted)} is not the name of a known user")
        same = wanted in (user.name, str(user.uid))
        return Node(lambda f: same)

    def p_group(self) -> Node:
        wanted = self.argument("-group")
        user = self.proc.user
        if wanted not in (user.group, "root") and not wanted.isdigit():
            raise UsageError(f"{quote(wanted)} is not the name of an existing group")
        same = wanted in (user.group, str(user.gid))
        return Node(lambda f: same)

    def p_uid(self) -> Node:
        uid = self.proc.user.uid
        return self.compare("-uid", lambda f: uid, self.argument("-uid"))

    def p_gid(self) -> Node:
        gid = self.proc.user.gid
        return self.compare("-gid", lambda f: gid, self.argument("-gid"))

    def p_nouser(self) -> Node:
        return Node(lambda f: False)

    def p_nogroup(self) -> Node:
        return Node(lambda f: False)

    # ----------------------------------------------------------------------------------------------------- times

    def age(self, name: str, text: str) -> Node:
        """`-mtime N`: whole days ago. Times of changed attributes are not kept, so -ctime means content."""
        option = f"-{name}"
        sign, wanted = self.number(option, text)
        unit = TIMES[name] * NANO
        base = self.now
        if self.settings.day_start:
            when, _ = at(self.now, zone_of(self.proc))
            midnight = datetime(when.year, when.month, when.day, tzinfo=when.tzinfo) + timedelta(days=1)
            base = int((midnight - EPOCH).total_seconds()) * NANO

        accessed = name[0] == "a"

        def old(f: Found) -> float:
            return (base - ((f.stat.accessed_ns if accessed else f.stat.mtime_ns) or 0)) / unit

        if sign == "+":
            return Node(lambda f: old(f) >= wanted + 1) if unit == 86400 * NANO else Node(lambda f: old(f) > wanted)
        if sign == "-":
            return Node(lambda f: old(f) < wanted)
        if unit == 86400 * NANO:
            return Node(lambda f: wanted <= old(f) < wanted + 1)
        return Node(lambda f: wanted - 1 < old(f) <= wanted)

    def p_used(self) -> Node:
        sign, wanted = self.number("-used", self.argument("-used"))
        least, most = (wanted + 1, inf) if sign == "+" else (0, wanted - 1) if sign == "-" else (wanted, wanted)
        return Node(lambda f: least <= ((f.stat.accessed_ns or 0) - (f.stat.mtime_ns or 0)) // (86400 * NANO) <= most)

    def p_newer(self) -> Awaitable[Node]:
        return self.newer("m", "m", self.argument("-newer"))

    def p_anewer(self) -> Awaitable[Node]:
        return self.newer("a", "m", self.argument("-anewer"))

    def p_cnewer(self) -> Awaitable[Node]:
        return self.newer("c", "m", self.argument("-cnewer"))

    async def newer(self, which: str, than: str, word: str) -> Node:
        if than == "t":
            try:
                limit = parse_date(word, self.now, zone_of(self.proc))
            except BadDate:
                raise UsageError(f"I cannot figure out how to interpret {quote(word)} as a date or time") from None
        else:
            try:
                stat = await self.proc.fs.stat(self.proc.path(word), follow=True)
                limit = (stat.accessed_ns if than == "a" else stat.mtime_ns) or 0
            except OSError as error:
                raise UsageError(f"{quote(word)}: {reason(error)}") from None
        if which == "a":
            return Node(lambda f: (f.stat.accessed_ns or 0) > limit)
        return Node(lambda f: (f.stat.mtime_ns or 0) > limit)


def _from_emacs(pattern: str) -> str:
    """Translate Emacs syntax to an extended regular expression: groups and alternation are escaped, braces plain."""
    out: list[str] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\" and i + 1 < len(pattern):
            following = pattern[i + 1]
            out.append(following if following in "(|)" else c + following)
            i += 2
            continue
        if c == "[":
            end = pattern.find("]", i + 2 if pattern[i + 1 : i + 2] != "^" else i + 3)
            if end > 0:
                out.append(pattern[i : end + 1])
                i = end + 1
                continue
        out.append("\\" + c if c in "(|){}" else c)
        i += 1
    return "".join(out)
