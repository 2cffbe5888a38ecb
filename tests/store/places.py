"""The places in which a store is tested: memory, a directory, an encrypted one, and a real S3-compatible server."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from obstore.store import S3Store
from tests.support.servers import S3Server

from ramet.store.crypto.encrypted_objects import EncryptedObjects, open_encrypted
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, Objects, ObstoreObjects

KINDS = ("memory", "directory", "encrypted", "s3")
KEY = bytes(range(32))


def objects_at(kind: str, folder: Path, server: S3Server | None, prefix: str) -> Objects:
    if kind == "memory":
        return MemoryObjects()
    if kind == "directory":
        return DirectoryObjects(str(folder / "store"))
    if kind == "encrypted":
        sealed = open_encrypted(DirectoryObjects(str(folder / "store")), KEY)
        return cast(EncryptedObjects, sealed).for_workspace("tests")
    assert server is not None
    store = S3Store(
        server.bucket, endpoint=server.endpoint, access_key_id=server.key, secret_access_key=server.secret,
        region=server.region, virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip
    return ObstoreObjects(store, f"tests/{prefix}")
