"""The programs between Ramet and a box: server, helper, zygote and worker, each forked from the one before.

    server       one per Ramet process: starting Python takes longer than building a box
    box_helper   one per box: starts bubblewrap, enters the box, makes views of it; outside of the box
    zygote       in the box's namespaces, without rights; keeps one worker forked and waiting
    worker       adopts every process below its program; signals, terminal, memory, end of the whole tree

Reading order: `protocol`, `server`, `box_helper`, `namespaces`, `zygote`, `worker`, `program`. Rules of this folder:

- It runs as `python -I -S .../helper/__main__.py [UID GID]`, a package alone: without `ramet`, whose import takes
  longer than a box, and with the standard library only. So imports in here are relative.
- Single-threaded: setns into a user namespace refuses threads, and a fork of a small process is cheap.
- Everything is imported before the first box: later, files of the box would be where modules are looked for.
"""
