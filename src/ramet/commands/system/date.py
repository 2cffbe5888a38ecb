"""date: print the time in a format, and parse human dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo

from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    choose,
    flag,
    mixed,
    optional,
    ordered,
    quote,
    typographic,
    value,
)
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.commands.framework.inputs import slurp
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.text.strftime import NANO, at, strftime, zone, zone_of

_ISO = {
    "date": "%Y-%m-%d",
    "hours": "%Y-%m-%dT%H%:z",
    "minutes": "%Y-%m-%dT%H:%M%:z",
    "seconds": "%Y-%m-%dT%H:%M:%S%:z",
    "ns": "%Y-%m-%dT%H:%M:%S,%N%:z",
}
_RFC = {"date": "%Y-%m-%d", "seconds": "%Y-%m-%d %H:%M:%S%:z", "ns": "%Y-%m-%d %H:%M:%S.%N%:z"}


@dataclass(frozen=True, slots=True)
class DateOptions:
    order: tuple[tuple[str, object], ...] = ordered()
    date: str | None = value("-d", "--date", metavar="STRING", help="display time described by STRING, not 'now'")
    debug: bool = flag("--debug", help="annotate the parsed date, and warn about questionable usage to stderr")
    file: str | None = value("-f", "--file", metavar="DATEFILE", help="like --date; once for each line of DATEFILE")
    format: tuple[str, str] | None = mixed(
        optional(
            "-I",
            "--iso-8601",
            metavar="FMT",
            const="iso:date",
            help="output date/time in ISO 8601 format: date, hours, minutes, seconds or ns",
        ),
        choose({"-R --rfc-email --rfc-822 --rfc-2822": "rfc-email"}, help="output date and time in RFC 5322 format"),
        value(
            "--rfc-3339",
            metavar="FMT",
            convert=lambda t: f"rfc:{t}",
            help="output date/time in RFC 3339 format: date, seconds or ns",
        ),
        default=None,
    )
    resolution: bool = flag("--resolution", help="output the available resolution of timestamps")
    reference: str | None = value(
        "-r", "--reference", metavar="FILE", help="display the last modification time of FILE"
    )
    set: str | None = value(
        "-s", "--set", metavar="STRING", help="set time described by STRING (never permitted; it is only shown)"
    )
    utc: bool = flag("-u", "--utc", "--universal", help="print Coordinated Universal Time (UTC)")


async def date(proc: Proc, o: DateOptions, operands: list[str]) -> int:
    tz: tzinfo = zone("UTC0") if o.utc else zone_of(proc)
    pattern = _pattern(o, operands)
    now = int(proc.now() * NANO)
    sources = [x for x in (o.date, o.reference, o.file) if x is not None]
    if len(sources) + o.resolution > 1:
        raise UsageError("the options to specify dates for printing are mutually exclusive")
    if o.set is not None:
        if sources:
            raise UsageError("the options to print and set the time may not be used together")
        moment = _moment(o.set, now, tz)
        if moment is not None:
            proc.complain("cannot set date: Operation not permitted")
        await _show(proc, o.set, now, tz, pattern)
        return 1
    if o.file is not None:
        try:
            texts = decode(await slurp(proc, o.file)).splitlines()
        except OSError as error:
            proc.complain(f"{called(o.file)}: {reason(error)}")
            return 1
        status = 0
        for text in texts:
            status |= await _show(proc, text, now, tz, pattern)
        return status
    if o.reference is not None:
        try:
            now = (await proc.fs.stat(proc.path(o.reference), follow=True)).mtime_ns or 0
        except OSError as error:
            proc.complain(f"{called(o.reference)}: {reason(error)}")
            return 1
    if o.date is not None:
        return await _show(proc, o.date, now, tz, pattern)
    await proc.emit(encode(strftime(pattern, *at(now, tz)) + "\n"))
    return 0


def _pattern(o: DateOptions, operands: list[str]) -> str:
    if o.resolution:
        return "0.000000001"
    pattern: str | None = None
    if sum(name == "format" for name, _ in o.order) > 1:
        raise UsageError("multiple output formats specified", hint=False)
    if o.format is not None:
        kind, _, detail = str(o.format).partition(":")
        if kind == "rfc-email":
            pattern = "%a, %d %b %Y %H:%M:%S %z"
        else:
            table = _RFC if kind == "rfc" else _ISO
            if kind not in ("rfc", "iso"):
                detail = str(o.format)
            names = [n for n in table if n.startswith(detail)] if detail else []
            if len(names) != 1:
                option = "--rfc-3339" if kind == "rfc" else "--iso-8601"
                listed = "\n".join(
                    f"  - '{n}'" for n in (("hours", "minutes", "date", "seconds", "ns") if table is _ISO else table)
                )
                raise UsageError(f"invalid argument {quote(detail)} for '{option}'\nValid arguments are:\n{listed}")
            pattern = table[names[0]]
    for word in operands:
        if word.startswith("+"):
            if pattern is not None:
                raise UsageError("multiple output formats specified", hint=False)
            pattern = word[1:]
        else:
            if re.fullmatch(r"\d{8,12}(\.\d\d)?", word) and o.date is None:
                raise UsageError("cannot set date: Operation not permitted", hint=False)
            if o.date is not None or o.reference is not None:
                raise UsageError(
                    f"the argument {quote(word)} lacks a leading '+';\nwhen using an option to specify date(s), "
                    "any non-option\nargument must be a format string beginning with '+'"
                )
            raise UsageError(f"invalid date {quote(word)}", hint=False)
    return "%a %b %e %H:%M:%S %Z %Y" if pattern is None else pattern


def _moment(text: str, now: int, tz: tzinfo) -> int | None:
    try:
        return parse_date(text, now, tz)
    except (BadDate, OverflowError):
        return None


async def _show(proc: Proc, text: str, now: int, tz: tzinfo, pattern: str) -> int:
    try:
        moment = parse_date(text, now, tz)
        when, nanos = at(moment, tz)
    except (BadDate, OverflowError):
        proc.complain(typographic(proc, f"invalid date {quote(text)}"))
        return 1
    await proc.emit(encode(strftime(pattern, when, nanos) + "\n"))
    return 0


COMMANDS = [
    Command(
        "date",
        date,
        DateOptions,
        summary="Display date and time in the given FORMAT.",
        usage="[OPTION]... [+FORMAT]",
        max_operands=1,
        examples=[("date -d '2 days ago' +%F", "a relative date"), ("date -u -Iseconds", "now, in ISO 8601")],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("", "'standard input': {}", status=0),
    ),
]
