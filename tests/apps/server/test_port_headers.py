"""Which headers pass between clients and programs, and where redirects lead."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.apps.server.port_headers import PortPlace, from_program, moved, offered_to_program, to_program

PREFIX = "/v1/workspaces/w/ports/8000"
BELOW = PortPlace("https", "ramet.example", PREFIX, 8000, frozenset({"ramet.example", "127.0.0.1"}))
OWN = PortPlace("http", "pab.localhost:8750", "", 8000, cookie=b"ramet-port")


@pytest.mark.parametrize(
    ("location", "below", "own"),
    [
        ("/x?a=1#f", f"{PREFIX}/x?a=1#f", "/x?a=1#f"),
        ("x", f"{PREFIX}/dir/x", "/dir/x"),
        ("../x", f"{PREFIX}/x", "/x"),
        ("?q", f"{PREFIX}/dir/page?q", "/dir/page?q"),
        ("", f"{PREFIX}/dir/page", "/dir/page"),
        ("http://localhost:8000/x", f"{PREFIX}/x", "/x"),
        ("http://127.0.0.1:8000", f"{PREFIX}/", "/"),
        ("//localhost:8000/x", f"{PREFIX}/x", "/x"),
        ("http://localhost:9000/x", "/v1/workspaces/w/ports/9000/x", "http://localhost:9000/x"),
        (f"{PREFIX}/x", f"{PREFIX}/x", f"{PREFIX}/x"),
        (f"https://ramet.example{PREFIX}/x", f"{PREFIX}/x", f"https://ramet.example{PREFIX}/x"),
        ("https://elsewhere.example/x", "https://elsewhere.example/x", "https://elsewhere.example/x"),
        # out of the prefix, by all the ways that browsers read
        ("/../../../other/exec", f"{PREFIX}/other/exec", "/other/exec"),
        ("../../../../other/exec", f"{PREFIX}/other/exec", "/other/exec"),
        ("/%2e%2E/%2e./.%2e/other", f"{PREFIX}/other", "/other"),
        ("\\..\\..\\..\\other", f"{PREFIX}/other", "/other"),
        ("/\t../\n../ ../other", f"{PREFIX}/other", "/other"),
        ("https://ramet.example/v1/workspaces/other/exec", f"{PREFIX}/v1/workspaces/other/exec",
         "https://ramet.example/v1/workspaces/other/exec"),
        ("https://user@ramet.example/v1/x", f"{PREFIX}/v1/x", "https://user@ramet.example/v1/x"),
        ("http://127.0.0.1:8750/v1/x", "/v1/workspaces/w/ports/8750/v1/x", "http://127.0.0.1:8750/v1/x"),
        ("///evil.example/x", f"{PREFIX}/evil.example/x", "/evil.example/x"),
        ("/\\evil.example/x", "//evil.example/x", "//evil.example/x"),  # another host to browsers
        ("javascript:alert(1)", f"{PREFIX}/", "/"),
        ("http:", f"{PREFIX}/dir/page", "/dir/page"),
        ("http:x", f"{PREFIX}/dir/x", "/dir/x"),
        ("http://[", f"{PREFIX}/", "/"),
        ("http://localhost:99999/", f"{PREFIX}/", "/"),
        ("/\xe9", f"{PREFIX}/%E9", "/%E9"),
    ],
)  # fmt: skip
def test_where_a_redirect_leads(location: str, below: str, own: str) -> None:
    assert moved(location, BELOW, "/dir/page") == below
    assert moved(location, OWN, "/dir/page") == own


@given(
    st.text(alphabet="/\\.%2eE ?#:@ax\t[]", max_size=24),
    st.sampled_from(["", "http:", "https://ramet.example", "//ramet.example", "http://localhost"]),
)
def test_no_redirect_leads_to_another_route(text: str, start: str) -> None:
    """Whatever a client makes of it: below the port, another port of the workspace, or another host."""
    found = moved(start + text, BELOW, "/dir/page")
    there = urlsplit(urljoin(f"https://ramet.example{PREFIX}/dir/page", found))
    if there.hostname == "ramet.example":
        assert f"{there.path}/".startswith("/v1/workspaces/w/ports/"), (start + text, found)


def test_what_reaches_a_program() -> None:
    sent = [
        (b"host", b"ramet.example"), (b"authorization", b"Bearer secret"), (b"cookie", b"console=secret"),
        (b"connection", b"close, x-hop"), (b"x-hop", b"1"), (b"te", b"trailers"), (b"x-forwarded-for", b"spoofed"),
        (b"x_forwarded_for", b"spoofed"), (b"forwarded", b"for=x"), (b"referer", b"https://ramet.example/ui/secret"),
        (b"origin", b"https://ramet.example"), (b"sec-websocket-protocol", b"ramet.bearer.secret"),
        (b"idempotency-key", b"k"), (b"expect", b"100-continue"), (b"accept", b"*/*"), (b"content-length", b"3"),
    ]  # fmt: skip
    assert to_program(sent, BELOW) == [
        (b"host", b"localhost:8000"), (b"accept", b"*/*"), (b"content-length", b"3"),
        (b"x-forwarded-host", b"ramet.example"), (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-prefix", PREFIX.encode()),
    ]  # fmt: skip


def test_what_reaches_a_program_at_an_origin_of_its_own() -> None:
    sent = [
        (b"host", b"pab.localhost:8750"), (b"authorization", b"Basic theirs"),
        (b"cookie", b"ramet-port=secret; a=b;ramet-port=secret"), (b"origin", b"http://pab.localhost:8750"),
    ]  # fmt: skip
    assert to_program(sent, OWN) == [
        (b"host", b"localhost:8000"), (b"authorization", b"Basic theirs"), (b"cookie", b"a=b"),
        (b"origin", b"http://localhost:8000"), (b"x-forwarded-host", b"pab.localhost:8750"),
        (b"x-forwarded-proto", b"http"),
    ]  # fmt: skip
    assert (b"origin", b"https://evil.example") in to_program([(b"origin", b"https://evil.example")], OWN)


def test_what_reaches_a_client() -> None:
    sent = [
        (b"Set-Cookie", b"a=b; Domain=localhost; Path=/"), (b"Set-Cookie", b"ramet-port=x"), (b"Connection", b"x-hop"),
        (b"X-Hop", b"1"), (b"Clear-Site-Data", b'"*"'), (b"Access-Control-Allow-Origin", b"*"), (b"ETag", b'"e"'),
    ]  # fmt: skip
    below = from_program(sent, BELOW, "/")
    assert below[0] == (b"etag", b'"e"') and not {b"set-cookie", b"x-hop", b"clear-site-data"} & dict(below).keys()
    assert b"allow-same-origin" not in dict(below)[b"content-security-policy"]
    own = from_program(sent, OWN, "/")
    assert [value for name, value in own if name == b"set-cookie"] == [b"a=b; Path=/"]
    assert b"content-security-policy" not in dict(own) and b"x-hop" not in dict(own)


def test_subprotocols_of_the_server_stay_with_it() -> None:
    assert offered_to_program(["chat", "ramet.bearer.secret", "ramet.port"]) == ["chat"]
