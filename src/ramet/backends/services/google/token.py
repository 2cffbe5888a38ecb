"""Access to Google: a refresh token, an access token, a service account, or a function that returns a token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from errno import EACCES
from pathlib import Path as LocalPath
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from ramet.backends.remote.http_client import HTTPClient
from ramet.backends.services.auth import LARGEST_GRANT, RefreshGrant, ServiceToken, TokenAuth, TokenSource
from ramet.backends.services.config import ServiceConfig
from ramet.core.errors import RametError, fail, missing_extra
from ramet.core.paths import ROOT

LASTS: Final = 3000.0
"""Seconds for which a token of a service account is used when Google does not say how long it lasts."""


@dataclass(frozen=True, kw_only=True, repr=False)
class GoogleConfig(ServiceConfig):
    """An account of Google: one of refresh_token, access_token and service_account_file opens it."""

    secrets: ClassVar[tuple[str, ...]] = ("client_secret", "refresh_token", "access_token")
    paths: ClassVar[tuple[str, ...]] = ("service_account_file",)

    client_id: str | None = None
    """The OAuth client that the refresh token was made for."""
    client_secret: str | None = None
    """The secret of that client."""
    client_secret_env: str | None = None
    """The environment variable that holds the secret of the client."""
    refresh_token: str | None = None
    """A refresh token; access tokens are made from it when they are needed."""
    refresh_token_env: str | None = None
    """The environment variable that holds the refresh token."""
    access_token: str | None = None
    """An access token, which Google ends within an hour."""
    access_token_env: str | None = None
    """The environment variable that holds the access token."""
    service_account_file: str | None = None
    """The key file of a service account (JSON)."""
    subject: str | None = None
    """The user whom the service account acts for, by domain-wide delegation."""
    token_url: str = "https://oauth2.googleapis.com/token"
    """Where access tokens are made."""
    allow: tuple[str, ...] = ()
    """Hosts that signed downloads may come from, in addition to Google's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        parts = urlsplit(self.token_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RametError("invalid_config", f"the token_url of {name} is not an address", "leave it out")
        ways = [way for way in ("refresh_token", "access_token") if self._given(way)]
        ways += ["service_account_file"] if self.service_account_file is not None else []
        if len(ways) > 1:
            raise RametError("invalid_config", f"{name} has {' and '.join(ways)}", "give one of them")
        if ways == ["refresh_token"] and self.client_id is None:
            raise RametError(
                "invalid_config",
                f"{name} has a refresh_token and no client_id",
                "give the client_id and client_secret that it was made for",
            )
        if self.subject is not None and self.service_account_file is None:
            raise RametError(
                "invalid_config", f"{name} has a subject and no service_account_file", "give service_account_file too"
            )

    def _given(self, secret: str) -> bool:
        return getattr(self, secret) is not None or getattr(self, f"{secret}_env") is not None


def google_auth(config: GoogleConfig, token: TokenSource | None, scopes: Sequence[str]) -> TokenAuth:
    """The authentication that the configuration asks for; `token` is a function of the user that comes first."""
    if token is not None:
        return TokenAuth(token)
    if config.service_account_file is not None:
        return TokenAuth(ServiceAccount(config, scopes))
    if config._given("refresh_token"):
        return TokenAuth(_UserGrant(config))
    return TokenAuth(lambda: _access_token(config))


def _access_token(config: GoogleConfig) -> str:
    token = config.secret("access_token")
    if token is None:
        words = (
            "Permission denied: there is no token; set refresh_token with client_id and client_secret, access_token, "
            f"or service_account_file in {type(config).__name__}"
        )
        raise fail(EACCES, ROOT, words)
    return token


class _UserGrant(RefreshGrant):
    """A refresh grant whose client secret may be in a variable, which is looked at when it is needed."""

    def __init__(self, config: GoogleConfig) -> None:
        self._config = config
        super().__init__(
            config.token_url,
            lambda: config.secret("refresh_token"),
            {"client_id": config.client_id},
            private=config.private,
            timeout=config.timeout,
        )

    async def __call__(self) -> ServiceToken | None:
        secret = self._config.secret("client_secret")
        if secret is not None:
            self._form["client_secret"] = secret
        return await super().__call__()


class ServiceAccount:
    """Tokens of a service account, as a source for `TokenAuth`: google-auth signs, our client asks."""

    def __init__(self, config: GoogleConfig, scopes: Sequence[str]) -> None:
        self._config, self._scopes = config, list(scopes)
        host = urlsplit(config.token_url).hostname or ""
        self._client = HTTPClient((host,), private=config.private, timeout=config.timeout)
        self._credentials: Any = None

    async def __call__(self) -> ServiceToken:
        try:
            from google.auth.exceptions import GoogleAuthError
            from google.auth.transport import Request, Response
        except ImportError:
            raise missing_extra("google", "a service account of Google") from None

        class Reply(Response):
            def __init__(self, answer: tuple[int, Mapping[str, str], bytes]) -> None:
                self._answer = answer

            @property
            def status(self) -> int:
                return self._answer[0]

            @property
            def headers(self) -> Mapping[str, str]:
                return self._answer[1]

            @property
            def data(self) -> bytes:
                return self._answer[2]

        class Transport(Request):
            """Called in the thread that signs; the request goes out of the event loop."""

            def __call__(
                self,
                url: str,
                method: str = "GET",
                body: Any = None,
                headers: Any = None,
                timeout: Any = None,
                **_: Any,
            ) -> Reply:
                sent = body.encode() if isinstance(body, str) else body
                asked = asyncio.run_coroutine_threadsafe(ask(method, url, headers or {}, sent), loop)
                return Reply(asked.result())

        ask = self._ask
        loop = asyncio.get_running_loop()
        if self._credentials is None:
            self._credentials = await asyncio.to_thread(self._load)
        try:
            await asyncio.to_thread(self._credentials.refresh, Transport())
        except GoogleAuthError as error:
            words = f"Permission denied: Google refuses the service account: {_first_words(error)}"
            raise fail(EACCES, ROOT, f"{words}; look at its key, its delegation, and the clock") from None
        expiry = self._credentials.expiry
        ends = None if expiry is None else expiry.timestamp() if expiry.tzinfo else _utc(expiry)
        return ServiceToken(str(self._credentials.token), ends)

    def _load(self) -> Any:
        """The credentials; the token is asked for at the configured address, whatever the file says."""
        from google.oauth2 import service_account

        file = str(self._config.service_account_file)
        try:
            info = json.loads(LocalPath(file).read_bytes())
            return service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
                {**info, "token_uri": self._config.token_url}, scopes=self._scopes, subject=self._config.subject
            )
        except OSError as error:
            words = f"Permission denied: the service_account_file {file} cannot be read: {error.strerror}"
            raise fail(EACCES, ROOT, words) from None
        except (ValueError, TypeError):  # its words may hold the key
            words = f"Permission denied: the service_account_file {file} is not the key of a service account"
            raise fail(EACCES, ROOT, f"{words}; make a JSON key in the Cloud console") from None

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self._client.ask(
            method, url, path=ROOT, headers=headers, content=body, also=range(400, 600)
        ) as response:
            content = await self._client.body(response, ROOT, LARGEST_GRANT)
            return response.status_code, dict(response.headers.items()), content

    async def close(self) -> None:
        await self._client.close()


def _utc(naive: Any) -> float:
    from datetime import UTC

    return float(naive.replace(tzinfo=UTC).timestamp())


def _first_words(error: Exception) -> str:
    """What Google says: `invalid_grant: Invalid JWT Signature.`"""
    return str(error.args[0] if error.args else error)[:120]
