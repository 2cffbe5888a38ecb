"""What a snapshot redacts: credentials of mounts, secrets of sessions.

- A remote resource is saved as its own description, which never contains a credential.
- A resource without a description is saved as the name of its class.
- A secret variable loses its value. Any other text loses the secret values inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ramet.core.resource import REDACTED, Described, Resource
from ramet.workspace.secrets import Secrets


def redact_resource(resource: Resource) -> dict[str, Any]:
    """Describe a resource without its credentials: type, config, and whether loading needs an override."""
    if not isinstance(resource, Described):
        name = type(resource).__name__
        return {"type": "custom", "needs_override": True, "redacted_fields": [], "config": {"class": name}}
    kind, config, redacted, needs_override = resource.describe()
    return {"type": kind, "needs_override": needs_override, "redacted_fields": list(redacted), "config": config}


def redact_secrets(secrets: Secrets, value: Any) -> Any:
    """Redact secrets in plain data."""
    return _without_secrets(secrets, value) if secrets else value


def _without_secrets(secrets: Secrets, value: Any) -> Any:
    if isinstance(value, str):
        return secrets.scrub_text(value)
    if isinstance(value, dict):
        return {
            key: REDACTED if key in secrets and isinstance(item, str) else _without_secrets(secrets, item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_secrets(secrets, item) for item in value]
    return value


def redacted_variables(env: Mapping[str, Any], secrets: Secrets) -> list[str]:
    """Return the secret variables of a saved environment that `secrets` cannot restore."""
    return sorted(name for name, value in env.items() if value == REDACTED and name not in secrets)
