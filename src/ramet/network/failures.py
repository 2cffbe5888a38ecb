"""What goes wrong with a request: refused by the policy, or a broken exchange, each by its kind."""

from __future__ import annotations

import enum
import errno
import socket
import ssl


class FailureKind(enum.Enum):
    REFUSED = "refused by the network policy"
    OFF = "the network is off"
    RESOLVE = "the host was not found"
    CONNECT = "the connection failed"
    CERTIFICATE = "the certificate cannot be verified"
    TLS = "the TLS handshake failed"
    TIMEOUT = "there was no answer in time"
    EMPTY = "the server sent no answer"
    PARTIAL = "the answer broke off"
    RESET = "the connection broke"
    PROTOCOL = "the answer is not HTTP"
    LIMIT = "a limit of the network policy was reached"


class NetworkFailure(OSError):
    """A request that was not carried out, or whose answer broke off. Its text carries no secret."""

    def __init__(self, kind: FailureKind, text: str, rule: str = "") -> None:
        self.kind, self.text, self.rule = kind, text, rule
        super().__init__(errno.EACCES if kind in (FailureKind.REFUSED, FailureKind.OFF) else errno.EIO, text)


def failure_of(error: BaseException) -> NetworkFailure | None:
    """Translate an error of the HTTP client; None for one that is none of the network's."""
    import httpx2

    if isinstance(error, NetworkFailure):
        return error
    text = str(error)
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return NetworkFailure(FailureKind.TIMEOUT, FailureKind.TIMEOUT.value)
    if isinstance(error, socket.gaierror):
        return NetworkFailure(FailureKind.RESOLVE, FailureKind.RESOLVE.value)
    if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in text:
        return NetworkFailure(FailureKind.CERTIFICATE, _certificate_text(text))
    if isinstance(error, httpx2.ConnectError):
        tls = "SSL" in text or isinstance(error.__cause__, ssl.SSLError)
        kind = FailureKind.TLS if tls else FailureKind.CONNECT
        return NetworkFailure(kind, kind.value)
    if isinstance(error, httpx2.RemoteProtocolError):
        if "without sending a response" in text:
            return NetworkFailure(FailureKind.EMPTY, FailureKind.EMPTY.value)
        if "incomplete" in text or "closed connection without" in text:
            return NetworkFailure(FailureKind.PARTIAL, text)
        return NetworkFailure(FailureKind.PROTOCOL, FailureKind.PROTOCOL.value)
    if isinstance(error, httpx2.HTTPError | ssl.SSLError | ConnectionError):
        return NetworkFailure(FailureKind.RESET, FailureKind.RESET.value)
    return None


def _certificate_text(text: str) -> str:
    reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
    return reason or FailureKind.CERTIFICATE.value
