"""The server: give up root for good, then fork a helper for each box until Ramet has ended."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys

from .box_helper import serve
from .descriptors import high
from .kernel import PR_SET_SUBREAPER, libc


def main() -> None:
    sys.meta_path.clear()  # nothing is imported any more: in a box, its own files would be found
    libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0)  # what a helper leaves is reaped here: not every init does it
    if len(sys.argv) == 3:  # Ramet is root; this process and its boxes are not
        uid, gid = map(int, sys.argv[1:])
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(0o022)
    with socket.socket(fileno=high(0)) as sock:
        os.open("/dev/null", os.O_RDWR)  # it becomes descriptor 0
        serve_boxes(sock)


def serve_boxes(sock: socket.socket) -> None:
    """Fork a helper for each box until Ramet closes the socket."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # pages that no collection touches stay shared with all helpers
    while True:
        payload, fds, _, _ = socket.recv_fds(sock, 16, 1, socket.MSG_CMSG_CLOEXEC)
        if not payload:
            return
        pid = os.fork()
        if pid == 0:
            try:
                sock.close()
                os.setsid()
                with socket.socket(fileno=fds[0]) as own:
                    serve(own)
            finally:
                os._exit(0)
        os.close(fds[0])
        sock.send(str(pid).encode())
