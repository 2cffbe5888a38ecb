"""`python -m bench.console_store FOLDER REVISIONS`: a store with one workspace of so many revisions, and a proposal.

Every revision holds one record and changes three paths: a module, a note, and a line of a file that all of them change.
"""

from __future__ import annotations

import asyncio
import sys

from ramet import Store

NAME, PROPOSAL = "long", "attempt"
FILE = "/src/app.py"
LINES = 1_500
AGENTS, SESSIONS, PER_RUN, MODULES, NOTES = 8, 24, 50, 240, 400
BEGIN = f"""\
mkdir -p /src/parts /notes; seq 1 {LINES} | sed 's/.*/value_& = compute(&)/' > {FILE}
printf '# Long\\n\\nA workspace with a **long** history.\\n' > /README.md"""


def script(number: int) -> str:
    """The command of a revision; every ninth one fails after its changes."""
    line = number * 7 % LINES + 1
    changes = (
        f"echo 'def part(): return {number}' > /src/parts/m{number % MODULES}.py",
        f"echo 'step {number}' > /notes/n{number % NOTES}.txt",
        f"sed -i '{line}s/.*/value_{line} = compute({number})/' {FILE}",
        *(("ls /nothing",) if number % 9 == 0 else ()),
    )
    return "; ".join(changes)


async def fill(store: Store, revisions: int) -> None:
    store.create(NAME)
    async with store.open(NAME) as ws:
        await ws.execute(BEGIN)
        await ws.commit("Begin", author="Ada Lovelace")
        for number in range(1, revisions):
            session = f"s{number // PER_RUN % SESSIONS}"
            if session not in ws.sessions:
                ws.create_session(session)
            meta: dict[str, str | int | float | bool] = {"run": f"r{number // PER_RUN}", "tokens": 100 + number % 900}
            await ws.execute(script(number), session_id=session, agent_id=f"agent-{number % AGENTS}", meta=meta)
            await ws.commit(f"Step {number}: change part {number % MODULES}", author="Ada Lovelace")
    store[NAME].tag("v1", revisions // 2)
    store[NAME].fork(revisions - 5, PROPOSAL)
    async with store.open(PROPOSAL) as ws:
        await ws.execute("echo proposed > /notes/proposed.txt; echo more >> /README.md", agent_id="agent-0")
        await ws.commit("Propose something")


if __name__ == "__main__":
    asyncio.run(fill(Store(sys.argv[1]), int(sys.argv[2])))
