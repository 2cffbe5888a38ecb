"""The nouns of Ramet: paths, stats, resources, streams, errors and limits. Standard library only.

Read in this order, half an hour in all:

1. `paths`: `Path`, a parsed absolute path.
2. `stat`: `Stat`, what is known about a path without reading it.
3. `errors`: `OSError` with errno inside, `RametError` at the surfaces.
4. `resource`: `Resource`, the ten verbs of everything that holds files.
5. `ops`: `walk`, `copy_tree` and other conveniences over any resource.
6. `fs`: `FileSystem`, a resource that follows links and opens files.
7. `limits`: `Limits` and the `Budget` of one execution.
8. `streams`: `Reader`, `Writer` and the pipe between them.
9. `proc`: `Proc`, everything a running command may touch.
10. `signals`, `usage`, `progress`: small values that the rest shares.
"""
