"""Certificates of an authority that only tests know, for servers on loopback with names."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


class TestAuthority:
    """`path` is its certificate; `server` makes what a server of these names needs."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._made = 0
        self.path = folder / "authority.pem"
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests of Ramet")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = (
            self._begin(self._name, self._key).add_extension(x509.BasicConstraints(True, 0), True)
            .add_extension(usage, True).sign(self._key, hashes.SHA256())
        )  # fmt: skip
        self.path.write_bytes(made.public_bytes(PEM))

    def _begin(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now, day = datetime.now(UTC), timedelta(days=1)
        return (
            x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )  # fmt: skip

    def server(self, names: Sequence[str]) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
        made = (
            self._begin(name, key)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), False)
            .sign(self._key, hashes.SHA256())
        )
        self._made += 1
        place = self._folder / f"server-{self._made}.pem"
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        place.write_bytes(made.public_bytes(PEM) + secret)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place)
        return context
