"""Every form of a rule of the network, with what it lets through and what not. `{P}` is the port of the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ramet.network.resolver import Resolver

NAMES = {
    "fine.example": ["127.0.0.1"], "deep.fine.example": ["127.0.0.1"], "other.example": ["127.0.0.1"],
    "localhost": ["127.0.0.1"], "metadata.example": ["169.254.169.254"], "fineexample": ["127.0.0.1"],
    "fine.example.evil.test": ["127.0.0.1"], "mapped.example": ["::ffff:127.0.0.1"], "nat.example": ["64:ff9b::7f00:1"],
    "both.example": ["10.0.0.1", "127.0.0.1"], "xn--fne-nza.example": ["127.0.0.1"],
}  # fmt: skip


async def lookup(host: str, port: int) -> list[str]:
    if host[0].isdigit() or ":" in host:
        return [host]
    if host not in NAMES:
        raise OSError("unknown")
    return NAMES[host]


def resolver() -> Resolver:
    return Resolver(lookup)


class Row(NamedTuple):
    """A policy. A URL may have a method before it."""

    policy: dict[str, list[Any]]
    allowed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def own(host: str, **more: Any) -> dict[str, Any]:
    """A rule about a host that may have a private address: all servers of tests have one."""
    return {"host": host, "private": True, **more}


FINE, OTHER = "http://fine.example:{P}/hello", "http://other.example:{P}/hello"
HERE = "http://127.0.0.1:{P}/hello"
TO = "http://fine.example:{P}/to?url="
TABLE: dict[str, Row] = {
    "nothing": Row({"allow": []}, (), (FINE, HERE, "http://localhost:{P}/hello", "http://unknown.example/")),
    "a host": Row(
        {"allow": [own("fine.example")]},
        (FINE, "http://FINE.Example:{P}/hello", "http://fine.example.:{P}/hello", "http://user:pw@fine.example:{P}/hello",
         "http://fine.example:{P}/x/../hello", "http://ｆｉｎｅ.example:{P}/hello", "POST " + FINE),
        (OTHER, "http://deep.fine.example:{P}/hello", "http://fineexample:{P}/hello",
         "http://fine.example.evil.test:{P}/hello", "http://fine.example:{P}@other.example:{P}/hello",
         "http://fine.example%40other.example:{P}/hello", "http://other.example:{P}/hello#@fine.example:{P}/",
         "http://other.example:{P}\\@fine.example:{P}/hello", "http://other.example:{P}/hello?@fine.example",
         "http://fıne.example:{P}/hello", "http://fiße.example:{P}/hello", "http://127.0.0.1:{P}/hello",
         TO + OTHER, TO + "//other.example:{P}/hello",
         TO + "http://169.254.169.254/latest/", TO + "http://2130706433:{P}/hello",
         TO + "http://fine.example:{P}@other.example:{P}/hello"),
    ),
    "a host, and no word about private addresses": Row({"allow": ["fine.example", "*"]}, (), (FINE, HERE)),
    "a name and its address": Row(
        {"allow": ["fine.example:{P}", "127.0.0.1:{P}"]}, (FINE, HERE), (OTHER, "http://fine.example:1/hello")
    ),
    "a name with a second address": Row(
        {"allow": ["both.example:{P}", "127.0.0.1:{P}"]}, ("http://both.example:{P}/hello",), (OTHER,)
    ),
    "a suffix": Row(
        {"allow": [own("*.example")]},
        (FINE, OTHER, "http://deep.fine.example:{P}/hello"),
        ("http://fineexample:{P}/hello", "http://fine.example.evil.test:{P}/hello", "http://localhost:{P}/hello"),
    ),
    "a port": Row({"allow": [own("fine.example", port=1)]}, (), (FINE,)),
    "a scheme": Row({"allow": [own("https://fine.example:*")]}, (), (FINE,)),
    "plain HTTP": Row({"allow": [own("http://fine.example:{P}")]}, (FINE,), ("http://fine.example/hello",)),
    "methods": Row(
        {"allow": [own("GET,HEAD fine.example")]}, (FINE, "HEAD " + FINE), ("POST " + FINE, "DELETE " + FINE)
    ),
    "a path": Row(
        {"allow": [own("http://fine.example:{P}/hello")]},
        (FINE, "http://fine.example:{P}/hello?q=1", "http://fine.example:{P}/hello/my%20file%C3%A4"),
        ("http://fine.example:{P}/nope", "http://fine.example:{P}/hellox", "http://fine.example:{P}/hello/../nope",
         "http://fine.example:{P}/hello/%2e%2e/nope", "http://fine.example:{P}/hello%2f..%2fnope",
         "http://fine.example:{P}//hello", "http://fine.example:{P}/hello;x", "http://fine.example:{P}/hello/..%20/nope",
         "http://fine.example:{P}/hello%20", "http://fine.example:{P}/hello/%252e%252e/nope",
         "http://fine.example:{P}/hello/..%5cnope"),
    ),
    "a network": Row({"allow": ["127.0.0.0/8"]}, (HERE,), (FINE, "http://10.0.0.1:{P}/hello")),
    "an address": Row(
        {"allow": ["127.0.0.1:{P}"]},
        (HERE, "http://2130706433:{P}/hello", "http://0x7f000001:{P}/hello", "http://0177.0.0.1:{P}/hello",
         "http://127.1:{P}/hello", "http://[::ffff:127.0.0.1]:{P}/hello"),
        ("http://127.0.0.2:{P}/hello", "http://[::1]:{P}/hello", "http://0.0.0.0:{P}/hello", FINE,
         "http://[::ffff:127.0.0.2]:{P}/hello", "http://[64:ff9b::7f00:1]:{P}/hello", "http://[2002:7f00:1::]:{P}/hello",
         "http://[fe80::1%25eth0]:{P}/hello", "http://[::127.0.0.1]:{P}/hello", "http://127.0.0.1.:1/hello"),
    ),
    "everything public": Row(
        {"allow": ["*"]}, (),
        (HERE, FINE, "http://localhost:{P}/hello", "http://169.254.169.254/latest/", "http://mapped.example:{P}/hello",
         "http://nat.example:{P}/hello", "http://metadata.example/", "http://[64:ff9b::a9fe:a9fe]/latest/",
         "http://[2002:a9fe:a9fe::]/", "http://[fd00::1]/", "http://0x7f.1:{P}/hello", "http://0:{P}/hello"),
    ),
    "the loopback by name": Row({"allow": ["localhost:{P}"]}, ("http://localhost:{P}/hello",), (HERE, FINE)),
    "another session": Row({"allow": [own("fine.example", session="web-*")]}, (), (FINE,)),
    "this session": Row({"allow": [own("fine.example", session="def*")]}, (FINE,), (OTHER,)),
    "another agent": Row({"allow": [own("fine.example", agent="bot")]}, (), (FINE,)),
    "a denial before a permission": Row(
        {"allow": [own("*.example")], "deny": ["other.example"]}, (FINE,), (OTHER, TO + OTHER)
    ),
    "a denied path": Row(
        {"allow": [own("fine.example")], "deny": ["http://fine.example:{P}/nope"]}, (FINE,),
        ("http://fine.example:{P}/nope", "http://fine.example:{P}/nope/x", "http://fine.example:{P}/x%2fnope",
         "http://fine.example:{P}/nope%20", "http://fine.example:{P}/x;/../nope"),
    ),
    "a denied address": Row({"allow": [own("fine.example")], "deny": ["127.0.0.0/8"]}, (), (FINE, HERE)),
    "a question before a permission": Row({"allow": [own("fine.example")], "ask": ["fine.example"]}, (), (FINE,)),
    "a denial before a question": Row({"ask": [own("fine.example")], "deny": ["fine.example"]}, (), (FINE,)),
}  # fmt: skip


def filled(value: Any, port: int) -> Any:
    if isinstance(value, str):
        return value.replace("{P}", str(port))
    if isinstance(value, dict):
        return {key: filled(item, port) for key, item in value.items()}
    return [filled(item, port) for item in value] if isinstance(value, list) else value


def asked(urls: tuple[str, ...], port: int) -> Iterator[tuple[str, str]]:
    """Method and URL."""
    for text in urls:
        method, space, url = text.partition(" ")
        yield (method, filled(url, port)) if space else ("GET", filled(text, port))
