from ramet import AgentRun

run = AgentRun("team-a", store="state")
run.create_workspace("site")
with run.sandbox(workspace="site") as sandbox:
    sandbox.files.write("/workspace/index.html", "<h1>Hello</h1>")
    sandbox.exec("echo draft > notes")
    revision = sandbox.terminate(outputs=["/workspace/index.html"])  # the notes end with the sandbox
assert revision is not None and revision.withheld == ()
