"""Run commands: simple commands, pipelines, loops, redirections, traps."""
