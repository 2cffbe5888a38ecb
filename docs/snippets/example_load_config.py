from pathlib import Path

from ramet import SyncWorkspace, load_config

Path("ramet.yaml").write_text(
    "mounts: {/data: {resource: disk, config: {root: ./data, create: true}}}\nenv: {WHO: you}\n"
)
config = load_config("ramet.yaml")
with SyncWorkspace(workspace=config.workspace()) as ws:
    assert ws.execute("ls -d /data; echo $WHO").text == "/data\nyou\n"
