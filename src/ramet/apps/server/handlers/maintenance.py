"""Store maintenance over HTTP: gc, verify, retention, grants, keys, pushes.

Operations on the whole store need the administrator; operations on a workspace need write access to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ramet import __version__
from ramet.apps.server import models
from ramet.apps.server import models_maintenance as care
from ramet.apps.server.background import long_work
from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import Call, Reply, answer, decode_json
from ramet.concurrency.watchdog import WATCHDOG
from ramet.core.errors import RametError
from ramet.store.refs.retention import Pin, Retention
from ramet.workspace.stored.git_push import Push, Pushed

if TYPE_CHECKING:
    from ramet.apps.server.api import Api

THE_STORE = ""
"""Workspace name in events of the whole store; no workspace has it."""


async def status(api: Api, call: Call) -> Reply:
    table, workspaces = api.connections, api.workspaces
    return answer(care.ServerStatus(
        status="stopping" if workspaces.stopping.is_set() else "ok",
        version=__version__,
        started_at=api.started_at,
        connections=care.ConnectionStatus(
            table.total, len(table.peers), {str(status): count for status, count in sorted(table.refused.items())}
        ),
        workspaces=len(opened := workspaces.opened()),
        running=sum(one.users for one in opened),
        working=api.working,
        holds=dict(WATCHDOG.counts),
        recent_holds=[care.LoopHold(*hold) for hold in list(WATCHDOG.recent)],
        limits=api.settings.bounds,
    ))  # fmt: skip


async def gc(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Collect)
    store = api.workspaces.need_store()
    return await long_work(
        api, call, lambda progress: store.gc(grace=asked.grace_seconds, dry=asked.dry, progress=progress),
        lambda done: done, stream=asked.stream,
        after=lambda done: None if asked.dry else api.events.add("collected", THE_STORE, removed=done.removed),
    )  # fmt: skip


async def cost(api: Api, call: Call) -> Reply:
    return await long_work(api, call, api.workspaces.need_store().cost, lambda found: found, stream=False)


async def verify(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Check)
    return await long_work(api, call, api.workspaces.need_store().verify, lambda report: report, stream=asked.stream)


async def repair(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Repair)
    store = api.workspaces.need_store()
    return await long_work(
        api, call, lambda progress: store.repair(drop=asked.drop, progress=progress), lambda done: done,
        stream=asked.stream, after=lambda done: api.events.add("repaired", THE_STORE, lost=len(done.lost)),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ retention


async def retention(api: Api, call: Call) -> Reply:
    return await _retention_info(api, call.parts[0])


async def store_retention(api: Api, call: Call) -> Reply:
    return await _retention_info(api, None)


async def _retention_info(api: Api, name: str | None) -> Reply:
    store = api.workspaces.need_store()
    return answer(
        await api.workspaces.blocking(lambda: care.RetentionInfo(store.retention(name=name), store.own_retention(name)))
    )


async def set_retention(api: Api, call: Call) -> Reply:
    return await _set_policy(api, call, call.parts[0])


async def set_store_retention(api: Api, call: Call) -> Reply:
    return await _set_policy(api, call, None)


async def _set_policy(api: Api, call: Call, name: str | None) -> Reply:
    """Replace the policy, but keep a hold."""
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Keeping)
    store = api.workspaces.need_store()
    policy = Retention(asked.keep_last, asked.keep_within, asked.min_age, "", asked.auto, asked.grace)
    await api.workspaces.blocking(lambda: store.retention(replace(policy, hold=store.own_retention(name).hold), name))
    api.events.add("retention", name or THE_STORE)
    return await _retention_info(api, name)


async def hold(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Hold)
    await api.workspaces.blocking(api.workspaces.need_store().hold, call.parts[0], asked.why)
    api.events.add("held", call.parts[0])
    return await retention(api, call)


async def lift(api: Api, call: Call) -> Reply:
    store, name = api.workspaces.need_store(), call.parts[0]

    def act() -> None:
        store.own_retention(name)  # fails if the workspace does not exist
        store.lift(name)

    await api.workspaces.blocking(act)
    api.events.add("lifted", name)
    return await retention(api, call)


# ----------------------------------------------------------------------------------------------------------- pins


def _pin(pin: Pin) -> care.PinInfo:
    return care.PinInfo(pin.token, pin.workspace, pin.target.hex(), pin.until, pin.why)


async def pins(api: Api, call: Call) -> Reply:
    asked, store = call.query(care.PinsQuery), api.workspaces.need_store()
    found = await api.workspaces.blocking(
        lambda: [pin for pin in store.pins(asked.workspace) if api.access.sees(call, pin.workspace)]
    )
    return answer(care.PinList([_pin(pin) for pin in found]))


async def pin(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.MakePin)
    handle = api.handle(call)
    made = await api.workspaces.blocking(
        lambda: handle().pin(asked.revision, seconds=asked.seconds, why=asked.why)
    )  # fmt: skip
    api.events.add("pinned", call.parts[0], pin=made.token, revision=made.target.hex())
    return answer(_pin(made), 201)


async def unpin(api: Api, call: Call) -> Reply:
    store, token = api.workspaces.need_store(), call.parts[0]
    found = await api.workspaces.blocking(lambda: [pin for pin in store.repository.pins.all() if pin.token == token])
    if not found or not (api.access.is_administrator(call) or api.access.sees(call, found[0].workspace)):
        raise RametError("not_found", f"no pin {token!r}", "list the pins")
    if not api.access.is_administrator(call):
        await api.access.need(call, found[0].workspace, "readwrite")
    await api.workspaces.blocking(store.unpin, token)
    api.events.add("unpinned", found[0].workspace, pin=token)
    return answer(models.Done())


# --------------------------------------------------------------------------------------------------------- grants


async def grants(api: Api, call: Call) -> Reply:
    handle = api.handle(call)
    return answer(care.GrantList(dict(await api.workspaces.blocking(lambda: handle().grants()))))


async def grant(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.MakeGrant)
    await api.access.grant(call, call.parts[0], call.parts[1], asked.access)
    api.events.add("granted", call.parts[0], principal=call.parts[1], access=asked.access)
    return await _grants_info(api, call)


async def revoke(api: Api, call: Call) -> Reply:
    await api.access.grant(call, call.parts[0], call.parts[1], None)
    api.events.add("revoked", call.parts[0], principal=call.parts[1])
    return await _grants_info(api, call)


async def _grants_info(api: Api, call: Call) -> Reply:
    """Return the current grants, even to a caller that just lost its own."""
    repository = api.workspaces.need_store().repository
    return answer(care.GrantList(dict(await api.workspaces.blocking(repository.grants.of, call.parts[0]))))


# ----------------------------------------------------------------------------------------------------------- keys


async def keys(api: Api, call: Call) -> Reply:
    found = api.workspaces.need_store().keys
    return answer(await api.workspaces.blocking(lambda: care.KeyRings(found.wrapped_by, found.show())))


async def rotate(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.RotateKeys)
    done = await api.workspaces.blocking(api.workspaces.need_store().keys.rotate, asked.to, asked.old)
    api.events.add("rotated", THE_STORE)
    return answer(care.Rotated(done))


async def shred(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.Shred)
    name, workspaces = call.parts[0], api.workspaces
    if asked.confirm != name:
        raise Refusal("invalid_argument", f"shredding {name!r} cannot be undone", "send its name in `confirm`")
    found = workspaces.need_store().keys
    await workspaces.blocking(lambda: found.wrapped_by)  # fails in a store without keys, before anything is closed
    async with workspaces.alone(name):
        done = await workspaces.blocking(found.shred, name)
    api.events.add("shredded", name, destroyed=done.destroyed)
    return answer(done)


# --------------------------------------------------------------------------------------------------------- pushes


def allowed_remote(api: Api, remote: str) -> None:
    """Refuse remotes that the server's --push-to does not allow, such as local paths."""
    told, plain = api.settings.push_to, remote
    while (decoded := unquote(plain)) != plain:
        plain = decoded  # git and web servers decode `%2e%2e` too, some of them twice
    inside = ".." not in plain and "\\" not in plain and plain.isprintable()
    if inside and any(f"{remote}/".startswith(f"{place.rstrip('/')}/") for place in told):
        return
    where = f"it pushes to {', '.join(told)}" if told else "pushing is off"
    raise Refusal(
        "permission_denied", f"cannot push there from this server: {where}", "start it with --push-to, or push yourself"
    )


async def push(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.PushTo)
    allowed_remote(api, asked.remote)
    handle, hosted = api.handle(call), api.workspaces.find(call.parts[0])
    if asked.revision is None and hosted is not None and hosted.committer is not None:
        await hosted.committer.commit()
    done = await api.workspaces.blocking(
        lambda: handle().push(
            asked.remote, asked.revision, branch=asked.branch, paths=asked.paths, token=asked.token,
            username=asked.username,
        )
    )  # fmt: skip
    api.events.add("pushed", call.parts[0], branch=done.branch)
    return answer(done)


async def pushes(api: Api, call: Call) -> Reply:
    handle = api.handle(call)
    return answer(care.PushList([_push_info(one) for one in await api.workspaces.blocking(lambda: handle().pushes())]))


def _push_info(push: Push) -> care.Waiting:
    secret = None if push.secret is None else list(push.secret)
    return care.Waiting(
        push.workspace, push.revision, push.remote, push.branch, list(push.paths), push.username, secret
    )  # fmt: skip


async def push_again(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), care.PushAgain)
    handle = api.handle(call)

    def act() -> care.PushedList:
        ref, done, failed = handle(), list[Pushed](), list[str]()
        for one in ref.pushes():
            if asked.revision not in (None, one.revision) or asked.branch not in (None, one.branch):
                continue
            try:
                allowed_remote(api, one.remote)
                done.append(ref.push_again(one, asked.secrets))
            except (RametError, Refusal) as error:
                failed.append(f"{one.branch}: {error.cause if isinstance(error, RametError) else error}")
        return care.PushedList(done, failed)

    return answer(await api.workspaces.blocking(act))
