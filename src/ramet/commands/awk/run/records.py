"""Split input into records by RS: a character, a regular expression or blank lines."""

from __future__ import annotations

import codecs
from functools import partial

from ramet.commands.awk.run.regex import Rx, compiled, wrong
from ramet.commands.awk.syntax.tree import AwkError
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import HUGE, SMALL
from ramet.core.limits import Budget
from ramet.core.streams import Reader


class Records:
    """The records of one stream. `batch` holds those that are split already; `at` is the next of them."""

    def __init__(self, reader: Reader, budget: Budget, utf8: bool = True) -> None:
        self.reader, self.budget = reader, budget
        self.batch: list[str] = []
        self.terms: list[str] | None = None
        """The separator after each record of the batch, where it is not always `term`."""
        self.term = "\n"
        self.at = 0
        self.done = False
        self.plain = True
        """Whether the batch is ASCII with no white space but space, tab and newline: `split()` is exact then."""
        self.large = False
        """Whether the rules work on this batch in a thread."""
        self._rest = ""
        self._more: list[str] = []
        self._waiting = 0
        """Blocks behind `_rest` and their size: a long record is searched each time its size has doubled."""
        self._raw: list[bytes] = []
        self._rs: object = None
        self._coding = "utf-8" if utf8 else "ascii"
        """Without UTF-8 each byte is a character, and bytes beyond ASCII are surrogates."""
        self._decoder = codecs.getincrementaldecoder(self._coding)("surrogateescape")

    async def fill(self, rs: str, icase: bool = False) -> bool:
        """Split more of the input; False at its end. Called when the batch is used up."""
        if rs == "\n" or (len(rs) == 1 and rs != " " and rs.isascii()):
            return await self._fill_by_char(rs)
        return await self._fill_by_regex(rs, icase)

    def respell(self) -> None:
        """RS has changed: put back records that are not read yet."""
        left = self.batch[self.at :]
        if left:
            if self.terms is not None:
                terms = self.terms[self.at :]
                text = "".join(record + term for record, term in zip(left, terms, strict=True))
            else:
                text = self.term.join(left) + self.term
            self._rest = text + self._rest
        self.batch, self.terms, self.at = [], None, 0
        if self._raw:
            self._rest += self._decoder.decode(b"".join(self._raw))
            self._raw = []

    async def _fill_by_char(self, rs: str) -> bool:
        self.terms, self.term, self.at = None, rs, 0
        delim = rs.encode()
        if self._rest:
            self._raw.insert(0, self._rest.encode("utf-8", "surrogateescape"))
            self._rest = ""
            joined = b"".join(self._raw)
            cut = joined.rfind(delim)
            if cut >= 0:
                self._raw = [joined[cut + 1 :]] if cut + 1 < len(joined) else []
                await self._split(joined[:cut], rs)
                return True
            self._raw = [joined]
        held = sum(map(len, self._raw))
        while not self.done:
            block = await self.reader.read()
            if not block:
                self.done = True
                break
            cut = block.rfind(delim)
            if cut < 0:
                self._raw.append(block)
                held += len(block)
                self.reader.hold(held)
                continue
            self._raw.append(block[:cut])
            data = b"".join(self._raw) if len(self._raw) > 1 else self._raw[0]
            self._raw = [block[cut + 1 :]] if cut + 1 < len(block) else []
            await self._split(data, rs)
            return True
        data = b"".join(self._raw)
        self._raw = []
        self.batch = []
        if not data:
            return False
        await self._split(data, rs)
        self.terms = [rs] * (len(self.batch) - 1) + [""]
        return True

    async def _split(self, data: bytes, rs: str) -> None:
        self.large = len(data) > HUGE
        self.plain, self.batch = await offload_large(self.budget, len(data), partial(self._records, data, rs))

    def _records(self, data: bytes, rs: str) -> tuple[bool, list[str]]:
        return _is_plain(data), data.decode(self._coding, "surrogateescape").split(rs)

    async def _read_text(self) -> bool:
        if self.done:
            return False
        block = await self.reader.read()
        if not block:
            self.done = True
            self._gather(self._decoder.decode(b"", True))
            return False
        self._more.append(self._decoder.decode(block))
        self._waiting += len(self._more[-1])
        self.reader.hold(len(self._rest) + self._waiting - len(block))
        if len(self._rest) <= SMALL or self._waiting >= len(self._rest):
            self._gather()
        return True

    def _gather(self, last: str = "") -> None:
        self._rest = "".join((self._rest, *self._more, last))
        self._more, self._waiting = [], 0

    async def _fill_by_regex(self, rs: str, icase: bool) -> bool:
        if self._raw:
            self._rest += self._decoder.decode(b"".join(self._raw))
            self._raw = []
        self.plain = False
        self.at = 0
        self.batch, self.terms = [], []
        paragraphs = rs == ""
        try:
            rx = compiled("\n\n+" if paragraphs else rs, icase, self._coding == "utf-8")
        except AwkError as error:
            raise wrong(error) from None
        while True:
            if paragraphs and self._rest.startswith("\n"):
                self._rest = self._rest.lstrip("\n")
            if not self._more and await self._cut_on(rx):
                return True
            if not await self._read_text():
                break
            if self._more:
                await self.budget.yield_turn()
        if await self._cut_on(rx):
            return True
        if self._rest:
            record, self._rest = self._rest, ""
            term = ""
            if paragraphs and record.endswith("\n"):
                whole = record
                record = whole.rstrip("\n")
                term = whole[len(record) :]
                if not record:
                    return False
            self.batch.append(record)
            self.terms.append(term)
            return True
        return False

    async def _cut_on(self, rx: Rx) -> bool:
        self.large = len(self._rest) > HUGE
        return await offload_large(self.budget, len(self._rest), partial(self._cut, rx))

    def _cut(self, rx: Rx) -> bool:
        """Split complete records: a separator at the end of the text may go on."""
        assert self.terms is not None
        text, start, pos = self._rest, 0, 0
        while True:
            found = rx.search(text, pos)
            if found is None or (found[1] >= len(text) and not self.done):
                break
            if found[0] == found[1]:
                pos = found[1] + 1
                if pos > len(text):
                    break
                continue
            self.batch.append(text[start : found[0]])
            self.terms.append(text[found[0] : found[1]])
            start = pos = found[1]
            if len(self.batch) >= 1000:
                break
        self._rest = text[start:]
        return bool(self.batch)


_ODD = (b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\x1f")


def _is_plain(data: bytes) -> bool:
    return data.isascii() and not any(odd in data for odd in _ODD)
