"""What `curl -v` shows of a request and its connection, in the words of curl."""

from __future__ import annotations

from ramet.core.paths import encode
from ramet.network.exchange import Exchange
from ramet.network.targets import Target


def connected(at: Target, address: str) -> bytes:
    """The lines of a connection that was made."""
    return encode(
        f"*   Trying {f'[{address}]' if ':' in address else address}:{at.port}...\n"
        f"* Connected to {at.host} ({address}) port {at.port} (#0)\n"
    )


def sent(head: list[str]) -> bytes:
    return encode("".join(f"> {line}\r\n" for line in head))


def received(exchange: Exchange) -> bytes:
    return b"".join(b"< " + line + b"\n" for line in head_of(exchange).split(b"\n")[:-1])


def left(at: Target) -> bytes:
    return encode(f"* Connection #0 to host {at.host} left intact\n")


def redirected(to: Target) -> bytes:
    return encode(f"* Issue another request to this URL: '{to.url}'\n")


def failed(text: str) -> bytes:
    """The lines of a transfer that failed; `text` is the error of curl."""
    return encode(f"* {text.partition(chr(10))[0]}\n* Closing connection 0\n")


def head_of(exchange: Exchange) -> bytes:
    """The status line and the headers of an answer, as the server has sent them."""
    first = f"{exchange.version} {exchange.status} {exchange.reason}".rstrip(" ") if exchange.reason else (
        f"{exchange.version} {exchange.status} "
    )  # fmt: skip
    return encode("\r\n".join([first, *(f"{name}: {text}" for name, text in exchange.headers), "", ""]))
