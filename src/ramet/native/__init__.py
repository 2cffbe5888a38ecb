"""Real programs on the workspace's tree: a bubblewrap box, kernel overlays, the helper that enters it.

Reading order: `options`, `ingredients`, `layout`, `box`, `server`, `helper/`, `program`, `tree`, `upper`.
"""
