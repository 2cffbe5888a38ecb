"""`Authority`: signs certificates by which Ramet reads the HTTPS of native programs, where a policy asks for that.

Rules that this file keeps:
- One workspace has one authority. Its key is in the memory of this process only: no file, no box and no store has it.
- Only programs of the workspace's own box trust it.
"""

from __future__ import annotations

import os
import ssl
import time
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from ramet.network.targets import BadURL, Target, parse_host

MOST_HOSTS: Final = 256
"""Certificates that are kept; the one unused for longest goes first."""
LEAF_SECONDS: Final = 24 * 3600
"""How long a certificate of a host is valid; it is made anew after half of that."""
_AUTHORITY_DAYS: Final = 3650
_EARLIER: Final = timedelta(minutes=5)
"""For programs whose clock is late."""
_LONGEST_NAME: Final = 64
SYSTEM_BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"
"""The file that most programs read on Debian, Ubuntu, Alpine and their kin."""
OWN_BUNDLE: Final = "/dev/ramet-certificates.pem"
"""Where programs find certificates where there is no such file."""
_BUNDLES: Final = (
    SYSTEM_BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cert.pem",
    "/etc/ssl/cert.pem",
)  # fmt: skip


def bundle_path() -> str:
    """Where programs of a box find the certificates that they trust."""
    replaced = os.path.isfile(SYSTEM_BUNDLE) and not os.path.islink(SYSTEM_BUNDLE)
    return SYSTEM_BUNDLE if replaced else OWN_BUNDLE


def trust_variables() -> dict[str, str]:
    """The variables by which programs with certificates of their own find those of the box."""
    names = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"]
    if bundle_path() != SYSTEM_BUNDLE:
        names += ["CURL_CA_BUNDLE", "GIT_SSL_CAINFO"]
    return dict.fromkeys(names, bundle_path())


def certificates_of(text: bytes) -> str:
    """The certificates of a PEM file, and nothing else of it; ValueError where there are none."""
    found = x509.load_pem_x509_certificates(text)
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in found)


def bundle_of(*more: str) -> bytes:
    """What programs trust: the authorities of the machine, and `more` (PEM)."""
    system = _system_certificates()
    return b"".join((system, b"" if system.endswith(b"\n") else b"\n", *(text.encode() for text in more)))


def _system_certificates() -> bytes:
    for place in (ssl.get_default_verify_paths().openssl_cafile, *_BUNDLES):
        try:
            with open(place, "rb") as file:
                return file.read()
        except OSError:
            continue
    return b""


class Authority:
    """Makes a certificate for each host when it is asked for."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed_authority()
        self._contexts: OrderedDict[str, tuple[ssl.SSLContext, float]] = OrderedDict()

    @property
    def certificate(self) -> str:
        """Its certificate (PEM), which is no secret."""
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def context(self, host: str) -> ssl.SSLContext:
        """What a server of this host needs to speak TLS; a client that names another host gets an alert."""
        known = self._contexts.get(host)
        if known is None or time.monotonic() > known[1]:
            known = self._make_context(host), time.monotonic() + LEAF_SECONDS / 2
            while len(self._contexts) >= MOST_HOSTS:
                self._contexts.popitem(last=False)
            self._contexts[host] = known
        self._contexts.move_to_end(host)
        return known[0]

    def _make_context(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        held = os.memfd_create("certificate", os.MFD_CLOEXEC)  # `ssl` reads files only, and no key goes to a disk
        try:
            with open(held, "wb", closefd=False) as file:
                file.write(self._leaf(host).public_bytes(serialization.Encoding.PEM))
                file.write(self._leaf_key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                ))  # fmt: skip
            context.load_cert_chain(f"/proc/self/fd/{held}")
        finally:
            os.close(held)

        def named(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> int | None:
            return None if name is None or _same(name, host) else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

        context.sni_callback = named
        return context

    def _leaf(self, host: str) -> x509.Certificate:
        is_address = Target("https", host, 443).is_address
        name = x509.IPAddress(ip_address(host)) if is_address else x509.DNSName(host)
        return (
            _builder(host, timedelta(seconds=LEAF_SECONDS)).issuer_name(self._certificate.subject)
            .public_key(self._leaf_key.public_key())
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._leaf_key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )  # fmt: skip

    def _signed_authority(self) -> x509.Certificate:
        name = "Ramet: HTTPS of one workspace"
        return (
            _builder(name, timedelta(days=_AUTHORITY_DAYS)).issuer_name(_named(name))
            .public_key(self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )  # fmt: skip


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:_LONGEST_NAME])])


def _builder(name: str, valid: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder().subject_name(_named(name)).serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER).not_valid_after(now + valid)
    )  # fmt: skip


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs, crl_sign=signs, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _same(name: str, host: str) -> bool:
    try:
        return parse_host(name) == host
    except BadURL:
        return False
