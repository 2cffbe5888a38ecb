"""Certificates for the HTTPS of native programs: strict clients accept them for their host, and for no other."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest

from ramet.network.authority import MOST_HOSTS, Authority, certificates_of

STRICT = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None) -> str | None:
    """Speak TLS over a pair of sockets; the protocol that both chose for what follows, or the error."""
    ours, theirs = socket.socketpair()
    said: list[str] = []

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as secured:
                secured.recv(1)
        except OSError as error:
            said.append(str(error))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=name) as secured:
            return secured.selected_alpn_protocol()
    finally:
        ours.close()
        thread.join()
        theirs.close()


def trusting(authority: Authority) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=authority.certificate)
    made.verify_flags |= STRICT
    made.set_alpn_protocols(["h2", "http/1.1"])
    return made


@pytest.mark.parametrize("host", ["fine.example", "a_b.example", "x" * 60 + ".long.example", "10.0.0.1", "::1"])
def test_a_strict_client_accepts_it_for_its_host(host: str) -> None:
    authority = Authority()
    client = trusting(authority)
    assert handshake(authority.context(host), client, host) == "http/1.1"
    for other in ("evil.example", "10.0.0.2"):
        with pytest.raises(OSError):
            handshake(authority.context(host), client, other)


def test_the_certificate_is_for_this_host_only() -> None:
    authority = Authority()
    context = authority.context("fine.example")
    context.sni_callback = None
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(context, trusting(authority), "evil.example")


def test_the_name_may_be_missing_or_spelled_differently() -> None:
    authority = Authority()
    client = trusting(authority)
    client.check_hostname = False
    for name in (None, "FINE.example"):
        assert handshake(authority.context("fine.example"), client, name) == "http/1.1"


def test_authorities_of_two_workspaces_do_not_trust_each_other() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(Authority().context("fine.example"), trusting(Authority()), "fine.example")


def test_contexts_are_kept_bounded_and_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    authority, now = Authority(), [0.0]
    monkeypatch.setattr("ramet.network.authority.time.monotonic", lambda: now[0])
    first = authority.context("fine.example")
    assert authority.context("fine.example") is first
    for number in range(MOST_HOSTS):
        authority.context(f"h{number}.example")
    assert len(authority._contexts) == MOST_HOSTS and authority.context("fine.example") is not first
    first = authority.context("fine.example")
    now[0] += 13 * 3600
    assert authority.context("fine.example") is not first


def test_a_file_of_certificates_gives_nothing_else() -> None:
    authority = Authority()
    text = f"secret words\n{authority.certificate}\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    assert certificates_of(text.encode()) == authority.certificate
    with pytest.raises(ValueError):
        certificates_of(b"root:x:0:0:root:/root:/bin/sh\n")
