"""Programs on terminals of their own: keys, echo, ^C, size, and the output of a program that has ended."""

from __future__ import annotations

import asyncio

from tests.workspace.native.conftest import SECONDS, need

from ramet.core.streams import pipe
from ramet.core.terminal import TerminalInput
from ramet.native.options import Native
from ramet.workspace.workspace import Workspace


class User:
    """Types when the terminal shows a text."""

    def __init__(self, *steps: tuple[bytes, bytes]) -> None:
        self.steps, self.shown, self.modes = list(steps), b"", list[bool]()
        self.reader, self._writer = pipe()
        self.input = TerminalInput(self.reader.read, lambda: (33, 99), self.modes.append)

    def see(self, data: bytes) -> None:
        self.shown += data
        while self.steps and self.steps[0][0] in self.shown:
            text, keys = self.steps.pop(0)
            self.shown = self.shown.partition(text)[2]
            self._writer.write(keys)


async def watch(native: Native, user: User, text: str, real_bash: bool | None) -> int:
    async with Workspace(native=native) as ws:
        execution = ws.execute(text, stdin=user.input, timeout=SECONDS, env={"TERM": "xterm"}, native=real_bash)
        async for piece in execution:
            user.see(piece.data)
        assert execution.result is not None
        return execution.result.exit_code


def test_a_repl_with_echo_interrupt_and_end(native: Native) -> None:
    need("python3")
    sleep = b"import time; time.sleep(1000)\n"
    user = User(
        (b">>> ", b"6 * 7\n"), (b"42\r\n>>> ", sleep), (b"1000)\r\n", b"\x03"), (b"Interrupt\r\n>>> ", b"exit(5)\n")
    )
    status = asyncio.run(watch(native, user, "python3 -q", real_bash=True))
    assert (status, user.steps, user.modes) == (5, [], [True, False])


def test_size_and_end_of_input(native: Native) -> None:
    user = User((b"33 99", b"typed\n\x04"))
    status = asyncio.run(watch(native, user, "stty size; cat; exit 4", real_bash=True))
    assert (status, user.shown) == (4, b"\r\ntyped\r\ntyped\r\n")


def test_what_is_typed_after_a_resize_finds_the_new_size(native: Native) -> None:
    class Mover(User):
        """Makes the window a row larger whenever the terminal shows how large it is."""

        rows = 10

        def __init__(self) -> None:
            super().__init__()
            self.input = TerminalInput(self.reader.read, lambda: (self.rows, 70))

        def see(self, data: bytes) -> None:
            self.shown += data
            if b"%d 70" % self.rows in self.shown:
                self.rows += 1
                self.input.resized()
                self._writer.write(b"\n" if self.rows < 60 else b"end\n")

    user = Mover()
    script = "stty -echo; stty size; while read x; do test -z $x || exit 3; stty size; done"
    assert asyncio.run(watch(native, user, script, real_bash=True)) == 3
    assert user.shown.split() == [word for rows in range(10, 60) for word in (b"%d" % rows, b"70")]


def test_a_program_between_commands_of_the_workspace(native: Native) -> None:
    need("python3")
    shown = "python3 -c 'import os; print(os.isatty(0), os.isatty(1), os.isatty(2))'"
    user = User()
    status = asyncio.run(watch(native, user, f"echo before; {shown}; {shown} < /dev/null 2> /e | cat; echo $?", None))
    assert (status, user.shown) == (0, b"before\nTrue True True\r\nFalse False False\n0\n")


def test_a_program_that_cannot_start_leaves_no_terminal(native: Native) -> None:
    user = User()
    status = asyncio.run(watch(native, user, "echo '#!/no/such' > /x; chmod +x /x; /x; echo $?", None))
    assert status == 0 and user.shown.endswith(b"127\n")
