"""Real programs on the workspace's tree: a bubblewrap box, kernel overlays, one helper process.

Reading order: `options`, `ingredients`, `layout`, `box`, `server`, `helper`, `program`, `tree`, `upper`.
"""
