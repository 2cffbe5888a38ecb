"""The helper of one box, outside of it: start bubblewrap, then leave zygotes in the box and in views of it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence

from . import protocol
from .descriptors import place_descriptors
from .kernel import check, libc
from .namespaces import CLONE_NEWNS, CLONE_NEWPID, Namespaces
from .protocol import answer, receive
from .sockets import lend, listen
from .view import CannotHold, confine
from .zygote import keep_worker


def serve(sock: socket.socket) -> None:
    """Answer the requests of Ramet about one box, until it closes the socket."""
    while True:
        request, fds = receive(sock)
        if request is None:
            return
        try:
            if "build" in request:
                build(request, fds)
            elif "lend" in request:
                lend(sock, request)
            elif "view" in request:
                enter_view(sock, request, fds)
            else:
                enter(sock, request, fds)
        except OSError as error:
            if "build" not in request:
                answer(sock, {"error": str(error)})
        finally:
            for fd in fds:
                os.close(fd)


def build(request: protocol.Request, fds: list[int]) -> None:
    """Become bubblewrap in a child: the box belongs to the user and the cgroup of this process."""
    if os.fork():
        return
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        place_descriptors(dict(zip(request["fds"], fds, strict=True)))
        os.execve(request["build"][0], request["build"], {})
    except OSError as error:
        os.write(2, f"{request['build'][0]}: {error.strerror}".encode())
    finally:
        os._exit(127)


def enter(sock: socket.socket, request: protocol.Request, fds: Sequence[int]) -> None:
    """Complete the mounts of a box, offer its trees to Ramet, and leave a zygote in it."""
    zygote, voice, *mounts = fds
    box = Namespaces(request["box"])
    if os.fork():
        box.close()
        return
    try:
        os.setsid()
        attached = list(zip(request["mounts"], mounts, strict=True))
        found, seen, devices, problem = box.enter(
            request["trees"], request["system"], attached, request["remote"], request["device"]
        )
        box.close()
        found += devices
        if request.get("listen"):
            found.append(listen(request["listen"]))
        if os.fork() == 0:
            sock.close()
            for fd in found:
                os.close(fd)
            keep_worker(socket.socket(fileno=zygote), socket.socket(fileno=voice), request)
            os._exit(0)
        answer(sock, {"system": seen, "devices": len(devices), "problem": problem}, found)
    except OSError as error:
        answer(sock, {"error": str(error)})
    finally:
        os._exit(0)


def enter_view(sock: socket.socket, request: protocol.Request, fds: Sequence[int]) -> None:
    """Leave a zygote in a new view of a box: the first process of a pid namespace that ends with it."""
    zygote, voice = fds
    box = Namespaces(request["box"])
    if os.fork():
        box.close()
        return
    try:
        os.setsid()
        box.join()
        if os.fork():  # only a process of the box's pid namespace can make one below it
            os._exit(0)
        check(libc.unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare")
        if os.fork():
            os._exit(0)
        try:
            root, seen = confine(request["view"], request["system"])
        except CannotHold as error:
            answer(sock, {"cannot": str(error)})
            os._exit(0)
        box.leave_rights()
        box.close()
        answer(sock, {"seen": seen}, [root])
        os.close(root)
        sock.close()
        keep_worker(socket.socket(fileno=zygote), socket.socket(fileno=voice), request, lasting=True)
    except OSError as error:
        answer(sock, {"error": str(error)})
    finally:
        os._exit(0)
