"""Network rules: every form, what each matches, and the spellings of hosts that only look like others."""

from __future__ import annotations

from typing import Any

import pytest

from ramet.core.errors import RametError
from ramet.network.network import Network
from ramet.network.rules import NetworkRule, NetworkVerdict, Outgoing
from ramet.network.targets import BadURL, parse_url

ALLOW = NetworkVerdict.ALLOW


def verdict(network: Network, url: str, method: str = "GET", **more: Any) -> str:
    return network.decide(Outgoing(method, parse_url(url), **more)).verdict.value


FORMS: dict[str, tuple[Any, list[str], list[str]]] = {
    "a host": (
        "api.example.org",
        ["http://api.example.org/", "https://API.Example.ORG./x", "https://api.example.org:8443/"],
        ["http://example.org/", "http://x.api.example.org/", "http://api.example.org.evil.example/"],
    ),
    "a suffix": (
        "*.example.org",
        ["http://a.example.org/", "http://b.a.example.org/"],
        ["http://example.org/", "http://evilexample.org/", "http://a.example.org.evil.example/"],
    ),
    "a port": (
        "api.example.org:443",
        ["https://api.example.org/"],
        ["http://api.example.org/", "https://api.example.org:25/"],
    ),
    "a suffix with a port": ("*.example.org:443", ["https://a.example.org/"], ["http://a.example.org/"]),
    "a scheme": (
        "https://api.example.org",
        ["https://api.example.org/x"],
        ["http://api.example.org:443/", "https://api.example.org:8443/"],
    ),
    "any port of a scheme": (
        "https://api.example.org:*",
        ["https://api.example.org:8443/"],
        ["http://api.example.org/"],
    ),
    "a path": (
        "https://api.example.org/v1/",
        ["https://api.example.org/v1/", "https://api.example.org/v1/a/b?x=../.."],
        [
            "https://api.example.org/v1",
            "https://api.example.org/v10/",
            "https://api.example.org/v1/../x",
            "https://api.example.org/v1/%2e%2e/x",
            "https://api.example.org/v1/..%2fx",
            "https://api.example.org/v1//x",
            "https://api.example.org/v1/%252e%252e/x",
            "https://api.example.org/v1/..;/x",
        ],
    ),
    "a path without a slash": (
        "http://h.example/v1",
        ["http://h.example/v1", "http://h.example/v1/a"],
        ["http://h.example/v10"],
    ),
    "any host": (
        "*",
        ["http://a.example/", "http://93.184.215.14/"],
        ["http://127.0.0.1/", "http://[::1]/", "http://10.1.1.1/"],
    ),
    "any host of a port": ("*:443", ["https://a.example/"], ["http://a.example/"]),
    "an address": (
        "127.0.0.1",
        ["http://127.0.0.1/", "http://127.0.0.1:8080/", "http://[::ffff:127.0.0.1]/"],
        ["http://127.0.0.2/", "http://localhost/"],
    ),
    "an address with a port": (
        "127.0.0.1:8080",
        ["http://127.0.0.1:8080/", "http://2130706433:8080/", "http://0x7f.1:8080/", "http://0177.0.0.1:8080/"],
        ["http://127.0.0.1/"],
    ),
    "an IPv6 address": ("::1", ["http://[::1]/", "http://[0:0::1]:80/"], ["http://[::2]/"]),
    "an IPv6 address with a port": ("[::1]:8080", ["http://[::1]:8080/"], ["http://[::1]/"]),
    "a network": (
        "10.0.0.0/8",
        ["http://10.1.2.3/", "http://10.255.0.1:99/"],
        ["http://11.0.0.1/", "http://a.example/"],
    ),
    "a network with a port": ("10.0.0.0/8:80", ["http://10.1.2.3/"], ["http://10.1.2.3:81/"]),
    "an IPv6 network": ("fd00::/8", ["http://[fd12::1]/"], ["http://[fe80::1]/"]),
    "parts": (
        {"host": "api.example.org", "port": 443, "scheme": "https", "path": "/v1/"},
        ["https://api.example.org/v1/x"],
        ["https://api.example.org/", "http://api.example.org/v1/x"],
    ),
    "an international name": (
        "bücher.example",
        ["http://xn--bcher-kva.example/", "http://BÜCHER.example/"],
        ["http://bucher.example/"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_allows_what_it_names_and_nothing_else(form: str) -> None:
    rule, allowed, refused = FORMS[form]
    network = Network.of({"allow": [rule]})
    assert network is not None
    assert [url for url in allowed if verdict(network, url) != "allow"] == []
    assert [url for url in refused if verdict(network, url) != "deny"] == []


def test_methods_are_part_of_a_rule() -> None:
    for rule in ("GET,HEAD https://a.example", {"host": "https://a.example", "methods": ["get", "HEAD"]}):
        network = Network.of({"allow": [rule]})
        assert network is not None
        found = [verdict(network, "https://a.example/", method) for method in ("GET", "HEAD", "POST", "get ")]
        assert found == ["allow", "allow", "deny", "deny"]


def test_denials_come_before_questions_before_permissions() -> None:
    network = Network.of({
        "allow": ["*.example.org"], "ask": ["POST *.example.org", "b.example.org"], "deny": ["c.example.org"],
    })  # fmt: skip
    assert network is not None
    found = [verdict(network, f"https://{name}.example.org/") for name in "abc"]
    assert [*found, verdict(network, "https://a.example.org/", "POST")] == ["allow", "ask", "deny", "ask"]
    assert verdict(Network(), "https://a.example/") == "deny"
    asking = Network.of({"default": "ask"})
    assert asking is not None and verdict(asking, "https://a.example/") == "ask"


def test_a_rule_may_be_for_some_sessions_and_agents() -> None:
    network = Network.of({"allow": [{"host": "a.example", "session": "web-*"}, {"host": "b.example", "agent": "bot"}]})
    assert network is not None
    assert verdict(network, "http://a.example/", session_id="web-1") == "allow"
    assert verdict(network, "http://a.example/", session_id="other") == "deny"
    assert verdict(network, "http://b.example/", agent_id="bot") == "allow"
    assert verdict(network, "http://b.example/", agent_id="robot") == "deny"


def test_what_a_tunnel_hides_is_allowed_by_rules_about_hosts_only() -> None:
    url, tunnel = "https://a.example/", {"tunnel": True}
    for rule, allowed in (("a.example:443", True), ("https://a.example", True), ("GET https://a.example", False),
                          ("https://a.example/v1/", False)):  # fmt: skip
        network = Network.of({"allow": [rule]})
        assert network is not None and (verdict(network, url, "CONNECT", **tunnel) == "allow") is allowed
    for denied in ("DELETE a.example", "https://a.example/admin"):
        network = Network.of({"allow": ["a.example"], "deny": [denied]})
        assert network is not None and verdict(network, url, "CONNECT", **tunnel) == "deny"


def test_a_denied_path_is_denied_in_every_spelling() -> None:
    network = Network.of({"allow": ["a.example"], "deny": ["a.example/admin"]})
    assert network is not None
    for path in ("/admin", "/admin/x", "/%61dmin", "/x/../admin", "/x/%2e%2e/admin", "/x%2f..%2fadmin", "//admin"):
        assert verdict(network, f"http://a.example{path}") == "deny", path
    assert verdict(network, "http://a.example/administrator") == "allow"


ADDRESSES: list[tuple[list[Any], str, str, bool]] = [
    (["a.example"], "a.example", "93.184.215.14", True),
    (["a.example"], "a.example", "127.0.0.1", False),
    (["a.example"], "a.example", "169.254.169.254", False),
    (["a.example"], "a.example", "168.63.129.16", False),
    (["a.example"], "a.example", "100.100.100.200", False),
    (["a.example"], "a.example", "::ffff:10.0.0.1", False),
    (["a.example"], "a.example", "2002:7f00:1::", False),
    (["a.example"], "a.example", "64:ff9b::a00:1", False),
    (["a.example"], "a.example", "fe80::1%eth0", False),
    (["a.example"], "a.example", "0.0.0.0", False),
    (["*"], "a.example", "10.0.0.1", False),
    (["a.example", "10.0.0.0/8"], "a.example", "10.0.0.1", True),
    (["a.example", "10.0.0.0/8"], "a.example", "::ffff:10.0.0.1", True),
    (["a.example", "10.0.0.0/8:81"], "a.example", "10.0.0.1", False),
    ([{"host": "a.example", "private": True}], "a.example", "10.0.0.1", True),
    ([{"host": "b.example", "private": True}, "a.example"], "a.example", "10.0.0.1", False),
    (["localhost"], "localhost", "127.0.0.1", True),
    (["localhost"], "localhost", "::1", True),
    (["localhost"], "localhost", "10.0.0.1", False),
    (["127.0.0.1"], "127.0.0.1", "127.0.0.1", True),
]


@pytest.mark.parametrize(("rules", "host", "address", "allowed"), ADDRESSES)
def test_a_private_address_takes_a_rule_that_names_it(rules: list[Any], host: str, address: str, allowed: bool) -> None:
    network = Network.of({"allow": rules})
    assert network is not None
    out = Outgoing("GET", parse_url(f"http://{host}/"))
    assert (network.refuses_address(out, address) is None) is allowed


def test_a_denied_network_is_denied_for_every_name() -> None:
    network = Network.of({"allow": ["*"], "deny": ["93.184.0.0/16"]})
    assert network is not None
    refused = network.refuses_address(Outgoing("GET", parse_url("http://a.example/")), "93.184.215.14")
    assert refused is not None and refused.rule == "93.184.0.0/16"


@pytest.mark.parametrize("url", [
    "", "http://", "http:///x", "http://a b/", "http://a\\@b/", "http://a\t/", "http://[::1/", "http://[::1]x/",
    "http://[fe80::1%25eth0]/", "http://256.0.0.1/", "http://1.2.3.4.5/", "http://0x100000000/", "http://08.1.1.1/",
    "http://1.2.3.0x/x y", "http://a..b/", "http://-a/", "http://a:0/", "http://a:65536/", "http://a:+80/",
    "http://a:0x50/", "http://a:80:80/", "http://a%2eb/", "http://x@y@z/", "http://a\r\nHost: b/", "ftp://a/",
    "file:///etc/passwd", "gopher://a/", "http://a.example:８０/",
])  # fmt: skip
def test_a_url_that_two_readers_may_read_differently_is_refused(url: str) -> None:
    with pytest.raises(BadURL):
        parse_url(url)


@pytest.mark.parametrize(("url", "host", "port", "line"), [
    ("example.org", "example.org", 80, "/"),
    ("http://user:pw@evil.example@", "", 0, ""),
    ("http://good.example@evil.example/", "evil.example", 80, "/"),
    ("http://good.example:80@evil.example:81/", "evil.example", 81, "/"),
    ("http://evil.example#@good.example/", "evil.example", 80, "/"),
    ("http://evil.example?@good.example/", "evil.example", 80, "/?@good.example/"),
    ("HTTPS://H.example:/a/./b/../c?q#f", "h.example", 443, "/a/c?q"),
    ("http://017700000001/", "127.0.0.1", 80, "/"),
    ("http://127.1:9/", "127.0.0.1", 9, "/"),
    ("http://１２７.0.0.1/", "127.0.0.1", 80, "/"),
    ("http://[0::ffff:7f00:1]/", "127.0.0.1", 80, "/"),
    ("http://h/é", "h", 80, "/%C3%A9"),
])  # fmt: skip
def test_a_url_is_read_as_its_host_reads_it(url: str, host: str, port: int, line: str) -> None:
    if not host:
        with pytest.raises(BadURL):
            parse_url(url)
        return
    found = parse_url(url)
    assert (found.host, found.port, found.request_line) == (host, port, line)


@pytest.mark.parametrize(("location", "leads_to"), [
    ("/b", "https://a.example/b"), ("b?x", "https://a.example/d/b?x"), ("//c.example/x", "https://c.example/x"),
    ("http://c.example", "http://c.example/"), ("?q", "https://a.example/d/e?q"), ("../../../x", "https://a.example/x"),
])  # fmt: skip
def test_where_a_location_leads(location: str, leads_to: str) -> None:
    assert parse_url("https://u:p@a.example/d/e").join(location).url == leads_to


@pytest.mark.parametrize("row", [
    "", "a b", "ftp://a.example", "a.example:99999", "http://a.example/x/*", "a.example/../x", "0177.0.0.1", "127.1",
    "10.0.0.1/8", "10.0.0.0/99", "*.", "a.*.example", "*a.example", "get a.example", 7, {}, {"host": 7},
    {"host": "a.example", "ports": 1}, {"host": "a.example", "port": "80"}, {"host": "a.example", "scheme": "ftp"},
    {"host": "a.example", "path": "x"}, {"host": "a.example", "port": 0},
])  # fmt: skip
def test_a_rule_that_cannot_be_read_is_refused(row: Any) -> None:
    with pytest.raises(RametError) as caught:
        NetworkRule.parse(ALLOW, row)
    assert caught.value.code == "invalid_config" and caught.value.remediation


@pytest.mark.parametrize("plain", [
    {"allows": []}, {"allow": "a.example"}, {"default": "maybe"}, {"limits": {"byte": 1}},
    {"limits": {"body_bytes": 0}},
    {"credentials": {"*": {"header": "A", "from": "env:X"}}}, {"credentials": {"a.example": {"header": "A"}}},
    {"credentials": {"a.example": {"header": "A", "query": "b", "from": "env:X"}}},
    {"credentials": {"a.example": {"header": "A: b", "from": "env:X"}}},
    {"credentials": {"a.example": {"from": "file:/x"}}},
    {"credentials": {"a.example": {"heade": "A", "from": "env:X"}}},
    {"credentials": {"a.example": {"from": "env:X"}, "b.example": {"from": "file:/x", "env": "X"}}},
    {"credentials": {"a.example": {"from": "env:X", "name": "x"}, "b.example": {"from": "env:Y", "name": "x"}}},
])  # fmt: skip
def test_a_policy_that_cannot_be_read_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(RametError) as caught:
        Network.of(plain)
    assert caught.value.code == "invalid_config"
