"""AzureResource keeps the contract of a resource against Azurite, where that is installed (`make test-emulators`)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from email.utils import formatdate

import pytest
from tests.support.servers import free_ports, until_ready

from ramet.backends.objects.azure import AzureConfig, AzureResource
from ramet.layers.stack import Policy, build
from ramet.testing import CHECKS, Check, run_check

ACCOUNT, CONTAINER = "devstoreaccount1", "data"
KEY = base64.b64encode(b"a key for tests that opens nothing anywhere else").decode()
PROGRAM = shutil.which("azurite-blob")

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="azurite-blob is not installed; `make test-emulators` does that"
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    port = free_ports(1)[0]
    words = [str(PROGRAM), "--inMemoryPersistence", "--skipApiVersionCheck", "--blobPort", str(port), "--silent"]
    process = subprocess.Popen(words, env={"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}", "PATH": os.environ.get("PATH", "")})
    try:
        address = f"http://127.0.0.1:{port}/{ACCOUNT}"
        until_ready(lambda: _made(address), process)
        yield address
    finally:
        process.terminate()
        process.wait()


def _made(address: str) -> bool:
    """Make the container, by a request signed as the service describes it."""
    about = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    lines = "".join(f"{name}:{value}\n" for name, value in about.items())
    text = f"PUT{chr(10) * 12}{lines}/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    headers = {**about, "Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    request = urllib.request.Request(f"{address}/{CONTAINER}?restype=container", method="PUT", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, mounted: bool, endpoint: str) -> None:
    def make() -> AzureResource:
        return AzureResource(
            AzureConfig(
                account=ACCOUNT, bucket=CONTAINER, account_key=KEY, endpoint_url=endpoint, prefix=uuid.uuid4().hex
            )
        )

    run_check(check, lambda: build(make(), Policy()) if mounted else make(), pytest.skip)
