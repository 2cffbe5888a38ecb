"""Who and where we are as the workspace has it: whoami, id, uname and more; nothing of the host shows."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, choose, flag, quote, typographic, value
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.strftime import NANO, at, strftime, zone_of


async def whoami(proc: Proc, o: object, operands: list[str]) -> int:
    await proc.emit(encode(proc.user.name + "\n"))
    return 0


@dataclass(frozen=True, slots=True)
class IdOptions:
    context: bool = flag("-Z", "--context", help="print only the security context of the process")
    group: bool = flag("-g", "--group", help="print only the effective group ID")
    groups: bool = flag("-G", "--groups", help="print all group IDs")
    name: bool = flag("-n", "--name", help="print a name instead of a number, for -ugG")
    real: bool = flag("-r", "--real", help="print the real ID instead of the effective ID, with -ugG")
    user: bool = flag("-u", "--user", help="print only the effective user ID")
    zero: bool = flag("-z", "--zero", help="delimit entries with NUL characters, not whitespace")


async def id_(proc: Proc, o: IdOptions, operands: list[str]) -> int:
    user = proc.user
    if sum((o.group, o.groups, o.user, o.context)) > 1:
        raise UsageError('cannot print "only" of more than one choice')
    if (o.name or o.real) and not (o.group or o.groups or o.user):
        raise UsageError("cannot print only names or real IDs in default format")
    if o.context:
        raise UsageError("--context (-Z) works only on an SELinux-enabled kernel", hint=False)
    status = 0
    for word in operands or [user.name]:
        await proc.budget.yield_turn()
        if word not in (user.name, str(user.uid)):
            proc.complain(typographic(proc, f"{quote(word)}: no such user"))
            status = 1
            continue
        end = "\0" if o.zero else "\n"
        if o.user:
            text = user.name if o.name else str(user.uid)
        elif o.group or o.groups:
            text = user.group if o.name else str(user.gid)
        else:
            text = f"uid={user.uid}({user.name}) gid={user.gid}({user.group}) groups={user.gid}({user.group})"
        await proc.emit(encode(text + end))
    return status


async def groups(proc: Proc, o: object, operands: list[str]) -> int:
    user = proc.user
    if not operands:
        await proc.emit(encode(user.group + "\n"))
        return 0
    status = 0
    for word in operands:
        await proc.budget.yield_turn()
        if word == user.name:
            await proc.emit(encode(f"{word} : {user.group}\n"))
        else:
            proc.complain(typographic(proc, f"{quote(word)}: no such user"))
            status = 1
    return status


async def users(proc: Proc, o: object, operands: list[str]) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class WhoOptions:
    count: bool = flag("-q", "--count", help="all login names and number of users logged on")
    heading: bool = flag("-H", "--heading", help="print line of column headings")
    all: bool = flag("-a", "--all", help="same as -b -d --login -p -r -t -T -u")
    me: bool = flag("-m", help="only hostname and user associated with stdin")


async def who(proc: Proc, o: WhoOptions, operands: list[str]) -> int:
    """Nobody is logged in to a workspace."""
    if o.count:
        await proc.emit(b"\n# users=0\n")
    elif o.heading:
        await proc.emit(b"NAME     LINE         TIME             COMMENT\n")
    return 0


@dataclass(frozen=True, slots=True)
class UnameOptions:
    all: bool = flag("-a", "--all", help="print all information")
    kernel: bool = flag("-s", "--kernel-name", help="print the kernel name")
    node: bool = flag("-n", "--nodename", help="print the network node hostname")
    release: bool = flag("-r", "--kernel-release", help="print the kernel release")
    version: bool = flag("-v", "--kernel-version", help="print the kernel version")
    machine: bool = flag("-m", "--machine", help="print the machine hardware name")
    processor: bool = flag("-p", "--processor", help="print the processor type")
    platform: bool = flag("-i", "--hardware-platform", help="print the hardware platform")
    system: bool = flag("-o", "--operating-system", help="print the operating system")


MACHINE = "x86_64"
RELEASE = "6.1.0-ramet"


async def uname(proc: Proc, o: UnameOptions, operands: list[str]) -> int:
    parts = [
        ("kernel", "Linux"),
        ("node", proc.user.host),
        ("release", RELEASE),
        ("version", "#1 SMP ramet"),
        ("machine", MACHINE),
        ("processor", "unknown"),
        ("platform", "unknown"),
        ("system", "GNU/Linux"),
    ]
    if o.all:
        chosen = [text for name, text in parts if text != "unknown"]
    else:
        chosen = [text for name, text in parts if getattr(o, name)] or ["Linux"]
    await proc.emit(encode(" ".join(chosen) + "\n"))
    return 0


async def arch(proc: Proc, o: object, operands: list[str]) -> int:
    await proc.emit(f"{MACHINE}\n".encode())
    return 0


async def hostid(proc: Proc, o: object, operands: list[str]) -> int:
    """The same number for the same name: there is no address that it could be made from."""
    await proc.emit(b"%08x\n" % zlib.crc32(encode(proc.user.host)))
    return 0


@dataclass(frozen=True, slots=True)
class HostnameOptions:
    short: bool = flag("-s", "--short", help="short host name")
    fqdn: bool = flag("-f", "--fqdn", "--long", help="long host name (FQDN)")
    domain: bool = flag("-d", "--domain", help="DNS domain name")
    ip: bool = flag("-i", "--ip-address", help="addresses for the host name")
    all_ip: bool = flag("-I", "--all-ip-addresses", help="all addresses for the host")


async def hostname(proc: Proc, o: HostnameOptions, operands: list[str]) -> int:
    if operands:
        proc.complain("you must be root to change the host name")
        return 1
    text = "" if o.domain else "127.0.0.1" if o.ip or o.all_ip else proc.user.host
    await proc.emit(encode(text + "\n"))
    return 0


@dataclass(frozen=True, slots=True)
class NprocOptions:
    all: bool = flag("--all", help="print the number of installed processors")
    ignore: str = value("--ignore", metavar="N", default="0", help="if possible, exclude N processing units")


async def nproc(proc: Proc, o: NprocOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0])}")
    if not re.fullmatch(r"\s*\+?\d+", o.ignore):
        raise UsageError(f"invalid number: {quote(o.ignore)}", hint=False)
    threads = proc.env.get("OMP_NUM_THREADS", "")
    count = int(threads) if threads.isdigit() and int(threads) and not o.all else 1
    await proc.emit(f"{max(1, count - int(o.ignore))}\n".encode())
    return 0


@dataclass(frozen=True, slots=True)
class UptimeOptions:
    pretty: bool = flag("-p", "--pretty", help="show uptime in pretty format")
    since: bool = flag("-s", "--since", help="system up since")


async def uptime(proc: Proc, o: UptimeOptions, operands: list[str]) -> int:
    when, _ = at(int(proc.now() * NANO), zone_of(proc))
    if o.since:
        text = strftime("%F %T", when)
    elif o.pretty:
        text = "up 0 minutes"
    else:
        text = strftime(" %H:%M:%S up 0 min,  0 users,  load average: 0.00, 0.00, 0.00", when)
    await proc.emit(encode(text + "\n"))
    return 0


@dataclass(frozen=True, slots=True)
class FreeOptions:
    unit: int = choose(
        {"-b --bytes": 1, "-k --kibi": 1024, "-m --mebi": 1024**2, "-g --gibi": 1024**3},
        default=1024,
        help="show output in that unit",
    )
    human: bool = flag("-h", "--human", help="show human-readable output")
    total: bool = flag("-t", "--total", help="show total for RAM + swap")
    wide: bool = flag("-w", "--wide", help="wide output")


async def free(proc: Proc, o: FreeOptions, operands: list[str]) -> int:
    from ramet.commands.framework.human_sizes import human

    limit = proc.budget.limits.string_bytes * 4

    def show(size: int) -> str:
        if o.human:
            return human(size) + "i" if size >= 1024 else f"{size}B"
        return str(size // o.unit)

    names = ["total", "used", "free", "shared", "buff/cache", "available"]
    rows = [("Mem:", [limit, 0, limit, 0, 0, limit]), ("Swap:", [0, 0, 0])]
    if o.total:
        rows.append(("Total:", [limit, 0, limit]))
    out = " " * 7 + "".join(n.rjust(13 if i == 0 else 12) for i, n in enumerate(names)) + "\n"
    for name, numbers in rows:
        out += name.ljust(7) + "".join(show(n).rjust(13 if i == 0 else 12) for i, n in enumerate(numbers)) + "\n"
    await proc.emit(out.encode())
    return 0


# -------------------------------------------------------------------------------------------------------- others


@dataclass(frozen=True, slots=True)
class TtyOptions:
    silent: bool = flag("-s", "--silent", "--quiet", help="print nothing, only return an exit status")


async def tty(proc: Proc, o: TtyOptions, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0])}", 2)
    if not o.silent:
        await proc.emit(b"not a tty\n")
    return 1


@dataclass(frozen=True, slots=True)
class SttyOptions:
    all: bool = flag("-a", "--all", help="print all current settings in human-readable form")
    save: bool = flag("-g", "--save", help="print all current settings in a stty-readable form")
    file: str | None = value("-F", "--file", metavar="DEVICE", help="open and use the specified DEVICE")


async def stty(proc: Proc, o: SttyOptions, operands: list[str]) -> int:
    proc.complain("'standard input': Inappropriate ioctl for device")
    return 1


_CONF = {
    "PAGE_SIZE": "4096",
    "PAGESIZE": "4096",
    "ARG_MAX": "2097152",
    "NAME_MAX": "255",
    "PATH_MAX": "4096",
    "LONG_BIT": "64",
    "_NPROCESSORS_ONLN": "1",
    "_NPROCESSORS_CONF": "1",
    "OPEN_MAX": "1024",
    "CHAR_BIT": "8",
    "INT_MAX": "2147483647",
    "UINT_MAX": "4294967295",
    "LINE_MAX": "2048",
    "HOST_NAME_MAX": "64",
    "PATH": "/bin:/usr/bin",
    "CLK_TCK": "100",
    "LOGIN_NAME_MAX": "256",
    "PIPE_BUF": "4096",
    "NGROUPS_MAX": "65536",
    "CHILD_MAX": "4096",
    "POSIX_VERSION": "200809",
    "_POSIX_VERSION": "200809",
    "WORD_BIT": "32",
}
_OF_PATHS = frozenset(("NAME_MAX", "PATH_MAX", "PIPE_BUF"))
"""Variables that depend on a path."""


@dataclass(frozen=True, slots=True)
class GetconfOptions:
    all: bool = flag("-a", help="print all variables")


async def getconf(proc: Proc, o: GetconfOptions, operands: list[str]) -> int:
    if o.all:
        await proc.emit(encode("".join(f"{name:<34} {text}\n" for name, text in _CONF.items())))
        return 0
    name, *rest = operands or [""]
    if not name or len(rest) > 1 or (name in _OF_PATHS and not rest):
        usage = "Usage: getconf [-v specification] variable_name [pathname]\n       getconf -a [pathname]\n"
        proc.stderr.write(usage.encode())
        return 2
    if name not in _CONF:
        proc.stderr.write(encode(f"getconf: Unrecognized variable `{name}'\n"))
        return 2
    if name in _OF_PATHS:
        try:
            await proc.fs.stat(proc.path(rest[0]), follow=True)
        except OSError as error:
            proc.stderr.write(encode(f"getconf: pathconf: {rest[0]}: {reason(error)}\n"))
            return 3
    await proc.emit(encode(_CONF[operands[0]] + "\n"))
    return 0


@dataclass(frozen=True, slots=True)
class PrintenvOptions:
    zero: bool = flag("-0", "--null", help="end each output line with NUL, not newline")


async def printenv(proc: Proc, o: PrintenvOptions, operands: list[str]) -> int:
    end = "\0" if o.zero else "\n"
    if not operands:
        await proc.emit_texts(part for name, text in proc.env.items() for part in (name, "=", text, end))
        return 0
    found = [proc.env[name] for name in operands if name in proc.env and "=" not in name]
    await proc.emit_texts(part for text in found for part in (text, end))
    return 0 if len(found) == len(operands) else 1


@dataclass(frozen=True, slots=True)
class SyncOptions:
    data: bool = flag("-d", "--data", help="sync only file data, no unneeded metadata")
    system: bool = flag("-f", "--file-system", help="sync the file systems that contain the files")


async def sync(proc: Proc, o: SyncOptions, operands: list[str]) -> int:
    """Acknowledged is durable already: there is nothing to wait for."""
    if o.data and o.system:
        raise UsageError("cannot specify both --data and --file-system", hint=False)
    if o.data and not operands:
        raise UsageError("--data needs at least one argument", hint=False)
    status = 0
    for word in operands:
        try:
            await proc.fs.stat(proc.path(word), follow=True)
        except OSError as error:
            proc.complain(f"error opening {quote(word)}: {reason(error)}")
            status = 1
    return status


COMMANDS = [
    Command(
        "whoami",
        whoami,
        summary="Print the user name.",
        usage="",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "logname",
        whoami,
        summary="Print the user's login name.",
        usage="",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "id",
        id_,
        IdOptions,
        summary="Print user and group information.",
        usage="[OPTION]... [USER]...",
        ignored=("-a",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "groups",
        groups,
        summary="Print group memberships.",
        usage="[USERNAME]...",
        original="GNU coreutils 9.1",
    ),
    Command(
        "users",
        users,
        summary="Output who is currently logged in: nobody.",
        usage="[FILE]",
        original="GNU coreutils 9.1",
    ),
    Command(
        "who",
        who,
        WhoOptions,
        summary="Print who is currently logged in: nobody.",
        usage="[OPTION]... [FILE | ARG1 ARG2]",
        ignored=("-b", "-d", "-l", "-p", "-r", "-s", "-t", "-T -w", "-u"),
        original="GNU coreutils 9.1",
    ),
    Command(
        "uname",
        uname,
        UnameOptions,
        summary="Print certain system information.",
        usage="[OPTION]...",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "arch",
        arch,
        summary="Print machine architecture.",
        usage="",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "hostid",
        hostid,
        summary="Print the numeric identifier (in hexadecimal) for the current host.",
        usage="[OPTION]",
        max_operands=0,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "hostname",
        hostname,
        HostnameOptions,
        summary="Show the host name.",
        usage="[OPTION]...",
        version_letters="V",
        help_letters="h",
    ),
    Command(
        "nproc",
        nproc,
        NprocOptions,
        summary="Print the number of processing units available.",
        usage="[OPTION]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "uptime",
        uptime,
        UptimeOptions,
        summary="Tell how long the system has been running.",
        usage="[OPTION]...",
        version_letters="V",
        help_letters="h",
    ),
    Command(
        "free",
        free,
        FreeOptions,
        summary="Display the memory that the limits of the workspace allow.",
        usage="[OPTION]...",
        version_letters="Vv",
    ),
    Command(
        "tty",
        tty,
        TtyOptions,
        summary="Print the file name of the terminal connected to standard input.",
        usage="[OPTION]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "stty",
        stty,
        SttyOptions,
        summary="Change or print terminal line settings; there is no terminal.",
        usage="[SETTING]...",
        original="GNU coreutils 9.1",
    ),
    Command("getconf", getconf, GetconfOptions, summary="Query system configuration variables.", usage="NAME [PATH]"),
    Command(
        "printenv",
        printenv,
        PrintenvOptions,
        summary="Print the values of the specified environment VARIABLE(s).",
        usage="[OPTION]... [VARIABLE]...",
        bad_usage=2,
        original="GNU coreutils 9.1",
        write_error=("write error: ", 2),
    ),
    Command(
        "sync",
        sync,
        SyncOptions,
        summary="Everything acknowledged is durable already; checks its operands only.",
        usage="[OPTION] [FILE]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
