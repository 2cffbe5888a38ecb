"""Failures of the network in the words of curl, with its exit statuses."""

from __future__ import annotations

import time
from typing import Final

from ramet.commands.network.curl.options import CurlError, Status
from ramet.network.failures import FailureKind, NetworkFailure
from ramet.network.targets import Target

CERTIFICATE_HELP: Final = (
    "\nMore details here: https://curl.se/docs/sslcerts.html\n\n"
    "curl failed to verify the legitimacy of the server and therefore could not\n"
    "establish a secure connection to it. To learn more about this situation and\n"
    "how to fix it, please visit the web page mentioned above."
)
_OF_THE_POLICY: Final = {
    FailureKind.REFUSED: Status.CONNECT, FailureKind.OFF: Status.RESOLVE, FailureKind.LIMIT: Status.SIZE,
}  # fmt: skip


def error_of(failure: NetworkFailure, place: Target | None, started: float, missing: int | None) -> CurlError:
    """The error of curl; `started` is when the transfer began, `missing` how many bytes of its body did not come."""
    kind = failure.kind
    took = round((time.monotonic() - started) * 1000)
    host, port = (place.host, place.port) if place is not None else ("", 0)
    if kind in _OF_THE_POLICY:
        return CurlError(_OF_THE_POLICY[kind], failure.text, always=True)
    if kind is FailureKind.TIMEOUT:
        if failure.text != kind.value:
            return CurlError(Status.TIMEOUT, failure.text, always=True)
        return CurlError(Status.TIMEOUT, f"Connection timed out after {took} milliseconds", True)
    if kind is FailureKind.PARTIAL:
        left = "outstanding read data remaining" if missing is None else f"{missing} bytes remaining to read"
        return CurlError(Status.PARTIAL, f"transfer closed with {left}")
    status, text = {
        FailureKind.RESOLVE: (Status.RESOLVE, f"Could not resolve host: {host}"),
        FailureKind.CONNECT: (
            Status.CONNECT, f"Failed to connect to {host} port {port} after {took} ms: Couldn't connect to server"
        ),
        FailureKind.CERTIFICATE: (Status.CERTIFICATE, _certificate_text(failure.text, host) + CERTIFICATE_HELP),
        FailureKind.TLS: (Status.TLS, "TLS connect error: the server does not speak TLS, or not this version"),
        FailureKind.EMPTY: (Status.EMPTY, "Empty reply from server"),
        FailureKind.RESET: (Status.RECEIVE, "Recv failure: Connection reset by peer"),
        FailureKind.PROTOCOL: (Status.PROTOCOL, "Received HTTP/0.9 when not allowed"),
    }[kind]  # fmt: skip
    return CurlError(status, text, transient=kind is FailureKind.RESOLVE)


def problem_of(error: CurlError) -> str:
    """Why there is another try."""
    if error.status is Status.CONNECT:
        return " : connection refused"
    if not error.transient:
        return " (retrying all errors)"
    return " : timeout" if error.status in (Status.TIMEOUT, Status.RESOLVE) else " : HTTP error"


def _certificate_text(text: str, host: str) -> str:
    if "mismatch" in text:
        return f"SSL: no alternative certificate subject name matches target host name '{host}'"
    return f"SSL certificate problem: {text}"
