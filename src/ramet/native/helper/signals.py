"""Signals of the zygote and the workers: which they ignore, and a pipe that says that a child has ended."""

from __future__ import annotations

import os
import signal

from .descriptors import high

FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP)
CATCHABLE = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]


def ignore_signals() -> None:
    """Ignore what can be but faults: a program that signals all processes ends no worker."""
    for number in CATCHABLE:
        if number not in FAULTS:
            signal.signal(number, signal.SIG_IGN)


def wake_on_children() -> int:
    """Return a pipe that becomes readable when a child ends."""
    wake_read, wake_write = map(high, os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    return wake_read
