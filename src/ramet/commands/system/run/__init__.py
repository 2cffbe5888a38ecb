"""Commands that run other commands: env, timeout, xargs, parallel and the like."""
