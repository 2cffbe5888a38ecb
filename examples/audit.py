"""What did the agent do? A policy that refuses and records, and the trace as files that ordinary tools read."""

from __future__ import annotations

import asyncio

from ramet import Workspace

POLICY = {
    "deny": [
        {"path": "/keys/**", "reason": "keys are not for agents"},
        {"command": "rm", "reason": "move to /trash instead"},
    ]
}


async def main() -> str:
    async with Workspace(policy=POLICY) as ws:
        ws.create_session("agent-7")
        for command in (
            "mkdir /trash /src; echo 'print(1)' > /src/a.py",
            "cat /keys/id",
            "rm /src/a.py",
            "mv /src/a.py /trash",
        ):
            await ws.execute(command, session_id="agent-7", agent_id="seven")
        report = await ws.execute(
            "cd /.sessions/agent-7; jq -r 'select(.exit_code != 0) | \"\\(.exit_code) \\(.command)\"' commands.jsonl; "
            'jq -r \'select(.verb == "write" or .verb == "rename") | "\\(.verb) \\(.path)"\' operations.jsonl'
        )
        print(report.text, end="")
        return report.check().text


if __name__ == "__main__":
    assert asyncio.run(main()) == "1 cat /keys/id\n126 rm /src/a.py\nwrite /src/a.py\nrename /src/a.py\n"
