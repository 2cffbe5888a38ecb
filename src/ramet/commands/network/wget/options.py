"""The options of wget, and the exit statuses that tell what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramet.commands.framework.command import UsageError, flag, several, value

VERSION_TEXT: Final = "1.21.3"
GENERIC, PARSE, FILE, NETWORK, TLS, AUTHENTICATION, PROTOCOL, SERVER = 1, 2, 3, 4, 5, 6, 7, 8


def seconds(text: str) -> float:
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        found = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise UsageError(f"invalid time period {text[:40]!r}", PARSE)
    return found


def tries_of(text: str) -> int:
    if text == "inf":
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"invalid number {text[:40]!r}", PARSE)
    return int(text)


@dataclass(frozen=True, slots=True)
class WgetOptions:
    quiet: bool = flag("-q", "--quiet", help="print nothing, except refusals of the network policy")
    terse: bool = flag("--no-verbose", help="print a line for each file")
    output: str = value(
        "-O", "--output-document", metavar="FILE", default="", help="write everything to FILE; - is stdout"
    )
    prefix: str = value("-P", "--directory-prefix", metavar="DIR", default="", help="directory to save in")
    resume: bool = flag("-c", "--continue", help="go on where a file ends")
    no_clobber: bool = flag("--no-clobber", help="leave files that exist")
    headers: tuple[str, ...] = several("--header", metavar="HEADER", help="send a header")
    post_data: str = value("--post-data", metavar="DATA", default=None, help="POST this")
    post_file: str = value("--post-file", metavar="FILE", default=None, help="POST a file")
    method: str = value("--method", metavar="METHOD", default="", help="the method to send")
    body_data: str = value("--body-data", metavar="DATA", default=None, help="the body to send")
    body_file: str = value("--body-file", metavar="FILE", default=None, help="the file to send")
    timeout: float = value(
        "-T", "--timeout", metavar="SECONDS", default=900.0, convert=seconds, help="without a byte (900)"
    )
    tries: int = value("-t", "--tries", metavar="NUM", default=20, convert=tries_of, help="attempts (20); 0 has no end")
    wait: float = value("-w", "--wait", metavar="SECONDS", default=0.0, convert=seconds, help="between downloads")
    agent: str = value(
        "-U", "--user-agent", metavar="NAME", default=f"Wget/{VERSION_TEXT}", help="the User-Agent header"
    )
    referer: str = value("--referer", metavar="URL", default="", help="the Referer header")
    user: str = value("--user", "--http-user", metavar="USER", default="", help="basic authentication")
    unasked: bool = flag("--auth-no-challenge", help="send user and password before they are asked for")
    password: str = value("--password", "--http-password", metavar="WORD", default="", help="its password")
    insecure: bool = flag("--no-check-certificate", help="do not verify certificates")
    server_response: bool = flag("-S", "--server-response", help="print the headers of answers")
    spider: bool = flag("--spider", help="only look whether it is there")
    input_file: str = value("-i", "--input-file", metavar="FILE", default="", help="read URLs of FILE")
    max_redirect: int = value(
        "--max-redirect", metavar="NUM", default=20, convert=tries_of, help="redirects to follow (20)"
    )
    content_disposition: bool = flag("--content-disposition", help="take the name of Content-Disposition")
    content_on_error: bool = flag("--content-on-error", help="save what comes with an error")
    recursive: bool = flag("-r", "--recursive", help="follow the links of pages, on the same host")
    level: int = value(
        "-l", "--level", metavar="NUM", default=5, convert=tries_of, help="depth of -r (5); 0 has no end"
    )
    no_parent: bool = flag("--no-parent", help="with -r, stay below the first directory")
    no_directories: bool = flag("--no-directories", help="with -r, create no directories")
    force_directories: bool = flag("-x", "--force-directories", help="create directories as -r does")
    no_host_directories: bool = flag("--no-host-directories", help="with -r, create no directory of the host")
    retry_connrefused: bool = flag("--retry-connrefused", help="retry refused connections too")


class WgetError(Exception):
    """A download that ended; `text` is printed."""

    def __init__(self, status: int, text: str, transient: bool = False, always: bool = False) -> None:
        super().__init__(text)
        self.status, self.text, self.transient, self.always = status, text, transient, always
