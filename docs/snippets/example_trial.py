import asyncio
import pathlib

from ramet import RametError, Trial

notes = pathlib.Path("project/notes")
notes.parent.mkdir()
notes.write_text("draft\n")


async def main() -> None:
    async with Trial("project") as trial:
        await trial.workspace.execute("sed -i s/draft/final/ notes", native=True)
        [patch] = trial.patches(trial.changes())
        assert "-draft" in str(patch)
        trial.apply(trial.changes())


try:
    asyncio.run(main())
    assert notes.read_text() == "final\n"
except RametError as error:  # without Linux, user namespaces and bubblewrap
    assert error.code == "native_unavailable"
