"""`build`: combines the layers of a mount. The only place that does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ramet.core.limits import DEFAULT_LIMITS, Limits
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap, Resource
from ramet.layers.cache import Cache
from ramet.layers.emulate import EMULATED, Emulate
from ramet.layers.limit import Limit
from ramet.layers.memory_cache import MemoryCache
from ramet.layers.readonly import ReadOnly
from ramet.layers.retry import Patience, Retry
from ramet.layers.trace import Operation, Trace


@dataclass(frozen=True)
class Policy:
    """What a mount wants of its stack."""

    writable: bool = True
    cache: MemoryCache | None = None
    """Where contents of a remote mount are kept; None leaves it uncached. Local mounts never need one."""
    prefix: Path = ROOT
    """The mount's prefix, which separates its contents from those of other mounts in a shared cache."""
    max_drain_bytes: int = 8 << 20
    limits: Limits = DEFAULT_LIMITS
    patience: Patience | None = None
    record: Callable[[Operation], None] | None = None


def build(resource: Resource, policy: Policy) -> Resource:
    """Wrap `resource` for a mount: retried, bounded, completed, cached, traced, and read-only if requested.

    From the backend outwards: retry (nearest to what fails), limit (bounds what runs at once), emulate (what it makes
    is retried step by step), cache (a hit needs none of the above), trace (what the workspace asked), read-only.
    """
    caps, backend = resource.caps, resource
    if Cap.LOCAL not in caps:
        resource = Limit(Retry(resource, policy.patience), concurrency=policy.limits.fan_out)
    if EMULATED | Cap.ATIMES not in caps:
        resource = Emulate(resource)
    if Cap.LOCAL not in caps and policy.cache is not None:
        policy.cache.claim(policy.prefix, backend)
        resource = Cache(resource, files=policy.cache, prefix=policy.prefix, max_drain_bytes=policy.max_drain_bytes)
    if policy.record is not None:
        resource = Trace(resource, policy.record)
    return resource if policy.writable else ReadOnly(resource)
