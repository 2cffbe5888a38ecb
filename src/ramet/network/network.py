"""`Network`: what may leave a workspace, within which bounds, and with which credentials.

Rules that this file keeps:
- Nothing leaves that no rule allows. Refusals come before questions, questions before permissions.
- An address that is not of the internet is refused unless a rule names it; a refused address is refused for every name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from ramet.core.errors import RametError
from ramet.network.addresses import is_public
from ramet.network.credentials import Credential, credentials_of
from ramet.network.rules import NetworkRule, NetworkVerdict, Outgoing
from ramet.network.targets import Target

MIB: Final = 1 << 20
REMEDY: Final = "ask its owner to allow the host (`network: {allow: [...]}`, or --allow-host)"
PARTS: Final = ("allow", "ask", "deny", "default", "limits", "credentials", "intercept", "authorities")
NOT_ALLOWED: Final = "no rule of the network policy allows it"


@dataclass(frozen=True)
class NetworkLimits:
    """Bounds of the requests of one workspace."""

    body_bytes: int = 1024 * MIB
    """Bytes of one body, sent or received."""
    timeout: float = 600.0
    """Seconds of one request, with its body."""
    concurrency: int = 16
    """Requests at the same time; others wait."""
    requests_per_minute: int | None = None
    """More are refused."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None and name == "requests_per_minute":
                continue
            kinds = int | float if name == "timeout" else int
            if isinstance(value, bool) or not isinstance(value, kinds) or value <= 0:
                raise RametError("invalid_config", f"network limit {name} is {value!r}", "Give a number above 0.")


class Decision(NamedTuple):
    """What a policy says of a request; `rule` is its text, empty where none matched."""

    verdict: NetworkVerdict
    rule: str
    reason: str = ""


@dataclass(frozen=True)
class Network:
    """A network policy: `Network.of({"allow": ["api.example.org", "*.example.com:443"]})`."""

    rules: tuple[NetworkRule, ...] = ()
    """Denials first, then questions, then permissions."""
    default: NetworkVerdict = NetworkVerdict.DENY
    limits: NetworkLimits = field(default_factory=NetworkLimits)
    credentials: tuple[Credential, ...] = ()
    intercept: tuple[NetworkRule, ...] = ()
    """Hosts whose HTTPS Ramet reads when native programs speak to them; others get a tunnel."""
    authorities: str = field(default="", repr=False)
    """Certificates (PEM) that are trusted besides the machine's."""

    @classmethod
    def of(cls, plain: Network | Mapping[str, Any] | None) -> Network | None:
        """Read a policy as users give it: `{"allow": [...], "ask": [...], "deny": [...], "credentials": {...}}`."""
        if plain is None or isinstance(plain, Network):
            return plain
        if not isinstance(plain, Mapping):
            raise RametError("invalid_config", f"network is {plain!r}", 'Give {"allow": ["api.example.org"]}.')
        unknown = set(plain) - set(PARTS)
        if unknown:
            raise RametError(
                "invalid_config", f"network has an unknown part {min(unknown)!r}", f"use {', '.join(PARTS)}"
            )
        try:
            default = NetworkVerdict(plain.get("default") or "deny")
        except ValueError:
            raise RametError(
                "invalid_config", f"network.default is {plain['default']!r}", "use deny, ask or allow"
            ) from None
        rules = [
            NetworkRule.parse(verdict, row)
            for verdict in (NetworkVerdict.DENY, NetworkVerdict.ASK, NetworkVerdict.ALLOW)
            for row in _rows(plain.get(verdict.value), verdict)
        ]
        given = {name: value for name, value in (plain.get("limits") or {}).items() if value is not None}
        known = {one.name for one in fields(NetworkLimits)}
        if set(given) - known:
            raise RametError("invalid_config", f"unknown network limit {min(set(given) - known)!r}", f"use {known}")
        return cls(
            tuple(rules), default, NetworkLimits(**given), credentials_of(plain.get("credentials") or {}),
            _intercepted(plain.get("intercept")), _authorities(plain.get("authorities")),
        )  # fmt: skip

    def allowing(self, rows: Iterable[str | Mapping[str, Any]]) -> Network:
        """The policy with more permissions."""
        more = tuple(NetworkRule.parse(NetworkVerdict.ALLOW, row) for row in rows)
        return replace(self, rules=(*self.rules, *more))

    @classmethod
    def with_hosts(cls, network: Network | None, hosts: Iterable[str] | None) -> Network | None:
        """A policy that allows these hosts too, as command lines name them; None for none at all."""
        return network if not hosts else (network or cls()).allowing(hosts)

    def decide(self, out: Outgoing) -> Decision:
        """What the rules say of a request, before any name is looked up."""
        for rule in self.rules:
            if rule.matches(out):
                return Decision(rule.verdict, rule.text, rule.reason)
        if self.default is NetworkVerdict.DENY:
            return Decision(NetworkVerdict.DENY, "", NOT_ALLOWED)
        return Decision(self.default, "default")

    def refuses_address(self, out: Outgoing, address: str) -> Decision | None:
        """Return why an address of the request's host must not be contacted; None where it may be."""
        permitted = is_public(address)
        for rule in self.rules:
            if rule.covers(out, address):
                if rule.verdict is NetworkVerdict.DENY:
                    if rule.network is not None:
                        return Decision(NetworkVerdict.DENY, rule.text, rule.reason)
                elif not permitted:
                    permitted = True
        if permitted:
            return None
        why = f"{out.target.host} has the private address {address}, which no rule names"
        return Decision(NetworkVerdict.DENY, "", why if out.target.host != address else "it is a private address")

    def permits_somewhere(self, host: str) -> bool:
        """Whether a permission or a question names this very host, at some port and for some session."""
        target = Target("http", host, 80)
        return any(rule.verdict is not NetworkVerdict.DENY and rule.names_host(target) for rule in self.rules)

    def intercepts(self, out: Outgoing) -> bool:
        """Whether Ramet reads the HTTPS of a native program to this host."""
        return any(rule.matches(out) for rule in self.intercept)

    @property
    def asks(self) -> bool:
        """Whether a request may lead to a question."""
        return self.default is NetworkVerdict.ASK or any(rule.verdict is NetworkVerdict.ASK for rule in self.rules)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that hold placeholders of secrets inside."""
        return {one.env: one.placeholder for one in self.credentials if one.env is not None}


def _rows(rows: object, verdict: NetworkVerdict) -> Iterable[Any]:
    if rows is None:
        return ()
    if isinstance(rows, str) or not isinstance(rows, list | tuple):
        raise RametError("invalid_config", f"network.{verdict.value} is not a list", 'write ["api.example.org"]')
    return rows


def _intercepted(given: object) -> tuple[NetworkRule, ...]:
    """Hosts to intercept: true for all, or a list of them."""
    if given is None or given is False:
        return ()
    if not (given is True or isinstance(given, list | tuple)):
        raise RametError("invalid_config", f"network.intercept is {given!r}", 'write true, or ["api.example.org"]')
    rows = ("*", "0.0.0.0/0", "::/0") if given is True else given
    rules = tuple(NetworkRule.parse(NetworkVerdict.ALLOW, row) for row in rows)
    for rule in rules:
        if rule.methods is not None or rule.path != "/" or rule.scheme == "http":
            raise RametError(
                "invalid_config", f"network.intercept has {rule.text!r}, which says more than a host and a port",
                "write methods and paths below allow, ask and deny",
            )  # fmt: skip
    return rules


def _authorities(place: object) -> str:
    """Read a file of certificates; nothing else of it is kept."""
    if place is None:
        return ""
    if not isinstance(place, str):
        raise RametError("invalid_config", f"network.authorities is {place!r}", "give the path of a PEM file")
    from ramet.network.authority import certificates_of

    try:
        with open(os.path.expanduser(place), "rb") as file:
            return certificates_of(file.read())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it has no certificates"
        raise RametError(
            "invalid_config", f"cannot read network.authorities {place!r}: {why}", "give the path of a PEM file"
        ) from None
