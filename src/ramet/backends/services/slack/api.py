"""Slack's Web API for its mount: methods, paged answers, and errors, which Slack tells with status 200."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from typing import Any, Final

from ramet.backends.remote.http_client import wait_of
from ramet.backends.services.auth import TokenAuth, TokenSource
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.pages import by_cursor
from ramet.backends.services.rest import Answer, Rest, rate_limited, token_refused
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path

PAGE: Final = 999
"""Entries of a page; Slack's limit is 1000, and a limit of less than that is what it recommends."""
SHRUNK: Final = 15
"""Messages of a page for apps that Slack limits to one request a minute."""
MISSING: Final = frozenset((
    "channel_not_found", "thread_not_found", "message_not_found", "user_not_found", "file_not_found", "users_not_found",
))  # fmt: skip
REFUSED: Final = frozenset((
    "access_denied", "ekm_access_denied", "no_permission", "not_allowed_token_type", "org_login_required",
    "restricted_action", "team_access_not_granted", "user_not_visible",
))  # fmt: skip
UNAUTHORIZED: Final = frozenset((
    "account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked", "two_factor_setup_required",
))  # fmt: skip
PASSING: Final = frozenset(
    ("fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org")
)
READING: Final = frozenset((
    "get", "getPermalink", "getPresence", "history", "info", "list", "lookupByEmail", "members", "messages", "replies",
    "teamInfo", "test",
))  # fmt: skip
"""Last words of methods that change nothing."""


class SlackAPI:
    """Slack's methods with one token."""

    def __init__(self, config: ServiceConfig, token: TokenSource, allow: tuple[str, ...]) -> None:
        self.rest = Rest.of(config, TokenAuth(token), home=("files.slack.com", *allow), judge=self._judge)
        self._shrunk = False

    async def ask(self, method: str, path: Path, **form: str | int | None) -> Any:
        return (await self.rest.send("POST", f"/{method}", path=path, form=form, reads=True)).json()

    def paged(self, method: str, inside: str, path: Path, **form: str | int | None) -> AsyncIterator[Any]:
        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            said = await self.ask(method, path, **form, limit=PAGE, cursor=cursor)
            following = (said.get("response_metadata") or {}).get("next_cursor") or None
            if inside == "messages" and following and len(said[inside]) <= SHRUNK:
                self._shrunk = True
            return said[inside], following

        return by_cursor(page, path)

    def _judge(self, answer: Answer) -> OSError | None:
        """Slack tells its errors with status 200."""
        if answer.status == 429:
            return self._limited(answer)
        if answer.status != 200 or not answer.headers.get("content-type", "").startswith("application/json"):
            return None
        said = answer.json()
        if not isinstance(said, dict) or said.get("ok") is not False:
            return None
        word = str(said.get("error", "unknown_error"))
        if word in ("ratelimited", "rate_limited"):
            return self._limited(answer)
        if word in MISSING:
            return fail(errno.ENOENT, answer.path, f"No such file or directory: Slack says {word}")
        if word == "missing_scope":
            lacks = f"the token has the scopes [{said.get('provided', '')}] and needs [{said.get('needed', '')}]"
            return fail(errno.EACCES, answer.path, f"Permission denied: {lacks}")
        if word == "not_in_channel":
            return fail(errno.EACCES, answer.path, "Permission denied: the bot is not in the channel; invite it")
        if word in UNAUTHORIZED:
            return token_refused(answer.path, f"Slack refuses the token: {word}")
        if word in REFUSED:
            return fail(errno.EACCES, answer.path, f"Permission denied: Slack says {word}")
        if word == "is_archived":
            return fail(errno.EROFS, answer.path, "Read-only file system: the channel is archived")
        if word in ("msg_too_long", "file_uploads_disabled", "storage_limit_reached"):
            return fail(errno.EFBIG, answer.path, f"File too large: Slack says {word}")
        if word in PASSING:
            return unavailable(answer.path, f"Slack says {word}")
        return fail(errno.EINVAL, answer.path, f"Invalid argument: Slack says {word}")

    def _limited(self, answer: Answer) -> OSError:
        error = rate_limited(answer.path, "Slack", wait_of(answer.headers))
        if self._shrunk:
            error.strerror = f"{error.strerror}; it allows this app one request a minute, of {SHRUNK} messages"
        return error
