"""The whole idea in a few seconds; the same as `ramet demo`."""

import asyncio

from ramet.apps.cli.verbs.demo import main

if __name__ == "__main__":
    asyncio.run(main())
