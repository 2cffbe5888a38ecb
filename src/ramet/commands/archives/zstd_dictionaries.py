"""Dictionaries of zstd: trained from samples, read for packing and unpacking, or an older version to build upon."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from ramet.commands.archives.codecs import zstd_library
from ramet.commands.archives.compressor_options import ZstdOptions
from ramet.commands.framework.command import UsageError
from ramet.commands.framework.inputs import slurp
from ramet.core.errors import LimitExceeded, reason
from ramet.core.paths import encode
from ramet.core.proc import Proc

_MAGIC = b"\x37\xa4\x30\xec"
_LARGEST = 112640
"""Bytes of a dictionary where nothing is said."""
_FEWEST = 5
"""Samples below which nothing can be learned."""


class Unusable(Exception):
    """The dictionary cannot be read; the tool's words."""


async def dictionary(proc: Proc, o: ZstdOptions) -> Any:
    """What -D or --patch-from name, for the library; None where neither is given."""
    word = o.dictionary if o.patch_from is None else o.patch_from
    if word is None:
        return None
    try:
        content = await slurp(proc, word)
    except OSError as error:
        told = f"Stat failed on dictionary file {word}: {reason(error)}"
        raise Unusable(f"zstd: error 31 : {told} ") from None
    if not content:
        return None
    library = zstd_library()
    try:
        if o.patch_from is not None:
            return library.ZstdDict(content, is_raw=True).as_prefix
        return library.ZstdDict(content, is_raw=not content.startswith(_MAGIC))
    except (ValueError, library.ZstdError) as error:
        raise Unusable(f"zstd: error 31 : {word}: {error} ") from None


def size_of(text: str | None, default: int) -> int:
    """A size with one of the suffixes that zstd knows."""
    if text is None:
        return default
    found = re.fullmatch(r"(\d+)(?:([KMG])i?B?)?", text)
    if found is None:
        raise UsageError("Incorrect parameters ", hint=False)
    return int(found[1]) * {None: 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[2]]


async def train(proc: Proc, o: ZstdOptions, operands: list[str]) -> int:
    """A dictionary from samples: files, or the blocks that -B cuts them into."""
    block = size_of(o.block, 0)
    samples: list[bytes] = []
    held = 0
    for word in operands:
        try:
            content = await slurp(proc, word)
        except OSError as error:
            proc.stderr.write(encode(f"zstd: can't stat {word} : {reason(error)} -- ignored \n"))
            continue
        held += len(content)
        if held > proc.budget.limits.string_bytes:
            raise LimitExceeded("string_bytes", proc.budget.limits.string_bytes)
        if block:
            samples += [content[at : at + block] for at in range(0, len(content), block)]
        elif content:
            samples.append(content)
        await proc.budget.yield_turn()
    if len(samples) < _FEWEST:
        proc.stderr.write(
            b"!  Warning : nb of samples too low for proper processing ! \n"
            b"!  Please provide _one file per sample_. \n"
            b"!  Alternatively, split files into fixed-size blocks representative of samples, with -B# \n"
            b"Error 14 : nb of samples too low"
        )
        return 14
    library = zstd_library()
    try:
        made = await asyncio.to_thread(library.train_dict, samples, size_of(o.largest, _LARGEST))
    except (library.ZstdError, ValueError) as error:
        proc.stderr.write(encode(f"dictionary training failed : {error} \n"))
        return 1
    content = bytes(made.dict_content)
    if o.number is not None:
        content = content[:4] + (int(o.number) & 0xFFFFFFFF).to_bytes(4, "little") + content[8:]
    writer = await proc.create(o.output or "dictionary")
    writer.write(content)
    await writer.drain()
    await proc.close(writer)
    return 0
