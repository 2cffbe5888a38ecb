"""The options of curl, and the exit statuses that tell what went wrong."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from ramet.commands.framework.command import UsageError, count, flag, ordered, several, value

VERSION_TEXT: Final = "7.88.1"
DATA: Final = ("data", "data_raw", "data_binary", "data_urlencode", "json")
NO_END: Final = 10**9
PROTOCOLS: Final = frozenset(("http", "https"))
FORMS: Final = ("form", "form_string")


class Status(enum.IntEnum):
    OK = 0
    PROTOCOL = 1
    USAGE = 2
    URL = 3
    RESOLVE = 6
    CONNECT = 7
    WEIRD = 8
    PARTIAL = 18
    HTTP = 22
    WRITE = 23
    READ = 26
    TIMEOUT = 28
    RANGE = 33
    TLS = 35
    REDIRECTS = 47
    EMPTY = 52
    RECEIVE = 56
    CERTIFICATE = 60
    ENCODING = 61
    SIZE = 63
    AUTHORITIES = 77


class CurlError(Exception):
    """A transfer that ended; `text` follows `curl: (N) `."""

    def __init__(self, status: Status, text: str, transient: bool = False, always: bool = False) -> None:
        super().__init__(text)
        self.status, self.text, self.transient = status, text, transient
        self.always = always
        """Whether it is shown with -s too."""


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise UsageError(f"expected a proper number, not {text[:40]!r}")
    return found


def whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise UsageError(f"expected a proper number, not {text[:40]!r}")
    return int(text)


def redirects(text: str) -> int:
    return NO_END if text == "-1" else whole(text)


def size(text: str) -> int:
    unit = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(text[-1:].lower(), 0)
    return whole(text[:-1]) * unit if unit else whole(text)


def protocols(text: str, known: frozenset[str] = PROTOCOLS) -> frozenset[str]:
    """Read `=https` or `-all,https`: which of the protocols are left."""
    found = known
    for word in text.split(","):
        sign, name = (word[0], word[1:]) if word[:1] in ("=", "+", "-") else ("+", word)
        named = PROTOCOLS if name == "all" else frozenset({name.lower()}) & PROTOCOLS
        found = named if sign == "=" else found - named if sign == "-" else found | named
    return found


def offset(text: str) -> int | None:
    return None if text == "-" else whole(text)


@dataclass(frozen=True, slots=True)
class CurlOptions:
    silent: bool = flag("-s", "--silent", help="show no errors, except refusals of the network policy")
    show_error: bool = flag("-S", "--show-error", help="show errors even with -s")
    fail: bool = flag("-f", "--fail", help="end with 22 for a status of 400 and more, and write no body")
    fail_with_body: bool = flag("--fail-with-body", help="as -f, but write the body")
    location: bool = flag("-L", "--location", help="follow redirects; the network policy decides about each")
    location_trusted: bool = flag("--location-trusted", help="as -L, and send credentials to other hosts too")
    max_redirs: int = value(
        "--max-redirs", metavar="NUM", default=50, convert=redirects, help="redirects to follow (50); -1 has no end"
    )
    post301: bool = flag("--post301", help="keep POST after a 301")
    post302: bool = flag("--post302", help="keep POST after a 302")
    post303: bool = flag("--post303", help="keep POST after a 303")
    outputs: tuple[str, ...] = several("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    remote_name: int = count("-O", "--remote-name", help="write to a file named as in the URL")
    remote_name_all: bool = flag("--remote-name-all", help="use -O for all URLs")
    remote_header_name: bool = flag("-J", "--remote-header-name", help="with -O, take the name of Content-Disposition")
    output_dir: str = value("--output-dir", metavar="DIR", default="", help="directory for -o and -O")
    create_dirs: bool = flag("--create-dirs", help="create the directories of -o")
    remove_on_error: bool = flag("--remove-on-error", help="remove the output when the transfer fails")
    urls: tuple[str, ...] = several("--url", metavar="URL", help="a URL to transfer")
    request: str = value("-X", "--request", metavar="METHOD", default="", help="the method to send")
    data: tuple[str, ...] = several("-d", "--data", "--data-ascii", metavar="DATA", help="POST data; @FILE reads it")
    data_raw: tuple[str, ...] = several("--data-raw", metavar="DATA", help="POST data, @ is no file")
    data_binary: tuple[str, ...] = several("--data-binary", metavar="DATA", help="POST data as it is; @FILE reads it")
    data_urlencode: tuple[str, ...] = several("--data-urlencode", metavar="DATA", help="POST data, encoded for a URL")
    json: tuple[str, ...] = several("--json", metavar="DATA", help="POST JSON, with its headers")
    get: bool = flag("-G", "--get", help="put the data into the URL and use GET")
    form: tuple[str, ...] = several("-F", "--form", metavar="NAME=CONTENT", help="POST multipart/form-data")
    form_string: tuple[str, ...] = several("--form-string", metavar="NAME=STRING", help="a literal part of a form")
    headers: tuple[str, ...] = several("-H", "--header", metavar="HEADER", help="send a header; @FILE reads headers")
    include: bool = flag("-i", "--include", help="write the headers of the answer too")
    head: bool = flag("-I", "--head", help="ask for the headers only")
    dump_header: str = value("-D", "--dump-header", metavar="FILE", default="", help="write the headers to FILE")
    verbose: bool = flag("-v", "--verbose", help="show what is sent and received, without secrets of the owner")
    write_out: str = value("-w", "--write-out", metavar="FORMAT", default="", help="print FORMAT after each transfer")
    user: str = value("-u", "--user", metavar="USER:PASSWORD", default="", help="basic authentication")
    basic: bool = flag("--basic", help="use basic authentication (the only one)")
    bearer: str = value("--oauth2-bearer", metavar="TOKEN", default="", help="send a bearer token")
    agent: str = value("-A", "--user-agent", metavar="NAME", default=None, help="the User-Agent header")
    referer: str = value("-e", "--referer", metavar="URL", default="", help="the Referer header")
    cookies: tuple[str, ...] = several("-b", "--cookie", metavar="DATA|FILE", help="send cookies, of a file too")
    cookie_jar: str = value("-c", "--cookie-jar", metavar="FILE", default="", help="write all cookies to FILE")
    junk_session_cookies: bool = flag("-j", "--junk-session-cookies", help="read no session cookies from a file")
    insecure: bool = flag("-k", "--insecure", help="do not verify certificates")
    cacert: str = value("--cacert", metavar="FILE", default="", help="certificates to trust")
    max_time: float = value(
        "-m", "--max-time", metavar="SECONDS", default=0.0, convert=seconds, help="bound of each transfer"
    )
    connect_timeout: float = value(
        "--connect-timeout", metavar="SECONDS", default=0.0, convert=seconds, help="bound of connecting"
    )
    max_filesize: int = value(
        "--max-filesize", metavar="BYTES", default=0, convert=size, help="largest file to download"
    )
    retry: int = value("--retry", metavar="NUM", default=0, convert=whole, help="tries after a passing fault")
    retry_delay: float = value("--retry-delay", metavar="SECONDS", default=0.0, convert=seconds, help="between tries")
    retry_max_time: float = value(
        "--retry-max-time", metavar="SECONDS", default=0.0, convert=seconds, help="start no try after this time"
    )
    retry_connrefused: bool = flag("--retry-connrefused", help="retry refused connections too")
    retry_all_errors: bool = flag("--retry-all-errors", help="retry every error")
    compressed: bool = flag("--compressed", help="ask for a compressed answer, and unpack it")
    upload: tuple[str, ...] = several("-T", "--upload-file", metavar="FILE", help="PUT a file; - is stdin")
    continue_at: int | None = value(
        "-C", "--continue-at", metavar="OFFSET", default=-1, convert=offset, help="resume; - finds the offset"
    )
    range: str = value("-r", "--range", metavar="RANGE", default="", help="ask for a part")
    parallel: bool = flag("-Z", "--parallel", help="transfer at the same time")
    parallel_max: int = value(
        "--parallel-max", metavar="NUM", default=50, convert=whole, help="with -Z, at most so many"
    )
    globoff: bool = flag("-g", "--globoff", help="take {} and [] in URLs literally")
    fail_early: bool = flag("--fail-early", help="end at the first error")
    proto: str = value("--proto", metavar="LIST", default="", help="protocols to use, such as =https")
    proto_redir: str = value("--proto-redir", metavar="LIST", default="", help="protocols that redirects may lead to")
    proto_default: str = value("--proto-default", metavar="NAME", default="http", help="of URLs that name none (http)")
    path_as_is: bool = flag("--path-as-is", help="accepted; paths are always sent without . and ..")
    order: tuple[tuple[str, object], ...] = ordered(operands=True)
