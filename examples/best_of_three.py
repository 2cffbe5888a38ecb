"""Speculative execution: three branches try different fixes, the one whose check passes best is kept."""

from __future__ import annotations

import asyncio

from ramet import Workspace

ATTEMPTS = [
    "sed -i 's/colour/color/' /doc.txt",  # first of each line only
    "sed -i 's/colour/color/g' /doc.txt",  # all of them
    "rm /doc.txt",  # the wrong idea
]


async def main() -> str:
    async with Workspace() as ws:
        await ws.execute("printf 'colour and colour\\nno match\\ncolour\\n' > /doc.txt")
        async with ws.speculate(len(ATTEMPTS)) as tries:
            scores = []
            for branch, attempt in zip(tries, ATTEMPTS, strict=True):
                await branch.execute(attempt)
                check = await branch.execute("test -f /doc.txt && grep -o colour /doc.txt | wc -l")
                scores.append(int(check.text) if check.ok and check.text else 99)
            print("words left in each branch:", scores)
            tries.keep(tries[scores.index(min(scores))])
        result = (await ws.execute("cat /doc.txt")).text
        print(result, end="")
        return result


if __name__ == "__main__":
    assert asyncio.run(main()) == "color and color\nno match\ncolor\n"
