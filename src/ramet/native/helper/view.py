"""Build the view that the programs of one session have of a box: hidden, denied and read-only paths, as mounts.

It runs in a new mount namespace and a new pid namespace: no other view can be reached by `/proc`. Rules that it keeps:

- Every path is opened without following links: a link in place of a directory is refused, not followed.
- What a view shows is a clone of the mount as it was before; all directories above a restricted path are mounts, too,
  so that they cannot be renamed.
- Paths in mounts that Ramet serves are not looked at: Ramet waits for this process.
"""

from __future__ import annotations

import errno
import os
import stat as modes

from .kernel import check, libc
from .mounts import CONFINED, RDONLY, attach, clone, new_mount, new_tmpfs, open_path, set_attributes

Row = tuple[str, str, bool, bool, bool]
"""A `Point`: path, reach, makes, only_file, served."""
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
MNT_DETACH = 2
RESTRICTED = ("read", "denied", "hidden")
COVERED = ("denied", "hidden")
MODES = {"hidden": (0o555, 0o444), "denied": (0, 0)}
"""Of the directory and the file that cover a path."""
READ_ONLY_OF_PROC = ("sys", "sysrq-trigger", "irq", "bus")


class CannotHold(Exception):
    """A rule about something that is not there, or that a link leads to."""


def confine(rows: list[Row], system: list[str]) -> tuple[int, list[tuple[str, int, bool]]]:
    """Make this process's mount namespace a view; returns its root, and how each restricted path is recognized."""
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    processes = new_mount(b"proc", {})  # now: the kernel gives one where another is visible
    points = {row[0]: row for row in rows}
    reach = {row[0]: row[1] for row in rows}
    clones, kinds = _clones(points)
    covers = _Covers(kinds)
    top = reach.get("/", "write")
    if top in COVERED:
        covers.replace_root(system)
    elif top == "read":
        set_attributes(fd := os.open("/", os.O_PATH), RDONLY)
        os.close(fd)
    for path in kinds:  # parents first
        if path == "/":
            continue
        region = reach[_above(path, kinds)]
        if reach[path] in COVERED:
            if region in COVERED:
                continue  # it is covered with what is above
            shows = any(other.startswith(f"{path}/") and reach[other] not in COVERED for other in clones)
            covers.put(path, reach[path], shows=shows)
            continue
        if region in COVERED:
            covers.make_target(path, _top_cover(path, reach, kinds))
        attach(clones[path], target := open_path(path))
        os.close(target)
    covers.close()
    for fd in clones.values():
        os.close(fd)
    attach_proc(processes)
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    return root, [(path, *_seen(path)) for path in kinds if reach[path] in RESTRICTED and _reached(path)]


def _clones(points: dict[str, Row]) -> tuple[dict[str, int], dict[str, bool]]:
    """Return a clone of each path that stays visible; and of each path that is there whether it is a directory."""
    declared = dict.fromkeys(points, True)
    for path, reach, makes, *_ in points.values():
        if makes and path != "/" and reach != points[_above(path, declared)][1]:
            _make_directories(path)
    clones: dict[str, int] = {}
    kinds: dict[str, bool] = {}
    for path, reach, _, only_file, served in points.values():
        try:
            fd = _open_point(path)
        except (FileNotFoundError, NotADirectoryError):
            above = points[_above(path, declared)][1]
            if reach in RESTRICTED and above not in COVERED and above != reach:
                raise CannotHold(
                    f"it has a rule for {path}, where nothing is; create that, or write PATH/** for a directory"
                ) from None
            continue
        is_directory = served or modes.S_ISDIR(os.fstat(fd).st_mode)
        if not only_file or not is_directory:
            kinds[path] = is_directory
            if path != "/" and reach not in COVERED:
                clones[path] = clone(fd)
                if reach == "read":
                    set_attributes(clones[path], RDONLY)
        os.close(fd)
    return clones, kinds


def _open_point(path: str) -> int:
    try:
        return open_path(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CannotHold(f"it has a rule for {path}, where a symbolic link is; name the real path") from None
        raise


def _make_directories(path: str) -> None:
    """Make the directory that a rule is about, and those above it; none where nothing can be made."""
    here = ""
    for name in path.split("/")[1:]:
        here = f"{here}/{name}"
        try:
            os.close(_open_point(here))
        except FileNotFoundError:
            try:
                os.mkdir(here, 0o755)
            except OSError:
                return  # of a read-only mount, say: the rule is about nothing then
        except NotADirectoryError:
            return


def _above(path: str, known: dict[str, bool]) -> str:
    """The nearest point above a path."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if path in known:
            return path
    return "/"


def _top_cover(path: str, reach: dict[str, str], known: dict[str, bool]) -> str:
    """The cover that a path lies in: covers below a cover are part of it."""
    found = _above(path, known)
    while found != "/" and reach[_above(found, known)] in COVERED:
        found = _above(found, known)
    return found


def _reached(path: str) -> bool:
    """Whether a covered path is there itself, and not only what is above it."""
    try:
        os.close(open_path(path))
    except OSError:
        return False
    return True


def _seen(path: str) -> tuple[int, bool]:
    """How a mount is recognized: by its device, and whether it is read-only."""
    fd = open_path(path)
    try:
        return os.fstat(fd).st_dev, bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)
    finally:
        os.close(fd)


class _Covers:
    """What lies over paths that programs must not see."""

    def __init__(self, kinds: dict[str, bool]) -> None:
        self._kinds = kinds
        self._holes: dict[str, int] = {}
        """Covers in which something shows, until they are made read-only."""
        self._plain = -1
        """A file system with an empty directory and an empty file of each sort, attached at /proc for a while."""

    def put(self, path: str, reach: str, *, shows: bool) -> None:
        """Cover a path; `shows` where something below it stays visible."""
        if shows:
            mount = self._holes[path] = new_tmpfs(MODES[reach][0] | 0o111)
        else:
            mount = self._empty(reach, directory=self._kinds[path])
        attach(mount, target := open_path(path))
        os.close(target)
        if not shows:
            os.close(mount)

    def _empty(self, reach: str, *, directory: bool) -> int:
        """Return an empty directory or file that nothing can be done with."""
        if self._plain < 0:
            self._plain = new_tmpfs(0o755)
            attach(self._plain, place := open_path("/proc"))  # the kernel clones only what is attached
            os.close(place)
            for sort, (for_directory, for_file) in MODES.items():
                os.mkdir(f"{sort}.d", dir_fd=self._plain)
                os.close(os.open(f"{sort}.f", os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=self._plain))
                os.chmod(f"{sort}.d", for_directory, dir_fd=self._plain)
                os.chmod(f"{sort}.f", for_file, dir_fd=self._plain)
        fd = os.open(f"{reach}.{'d' if directory else 'f'}", os.O_PATH | os.O_CLOEXEC, dir_fd=self._plain)
        made = clone(fd)
        os.close(fd)
        set_attributes(made, RDONLY | CONFINED)
        return made

    def make_target(self, path: str, cover: str) -> None:
        """Make the place in a cover where something shows."""
        *above, name = path.removeprefix(cover).strip("/").split("/")
        here = os.dup(self._holes[cover])
        for part in above:
            make_directory(part, here)
            below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        if self._kinds[path]:
            make_directory(name, here)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_CLOEXEC, 0o444, dir_fd=here))
        os.close(here)

    def replace_root(self, system: list[str]) -> None:
        """Go to a new root with what belongs to the box, and nothing of the workspace."""
        made = self._holes["/"] = new_tmpfs(0o755)
        kept = {}
        for name in system:
            try:
                if modes.S_ISLNK(os.lstat(f"/{name}").st_mode):
                    os.symlink(os.readlink(f"/{name}"), name, dir_fd=made)
                    continue
            except FileNotFoundError:
                continue
            os.mkdir(name, 0o755, dir_fd=made)
            if name != "proc":
                fd = open_path(f"/{name}")
                kept[name] = clone(fd, recursive=True)
                os.close(fd)
        attach(made, place := open_path("/proc"))
        os.close(place)
        for name, mount in kept.items():
            attach(mount, fd := os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=made))
            os.close(fd)
            os.close(mount)
        os.fchdir(made)
        check(libc.pivot_root(b".", b"."), "pivot_root")
        check(libc.umount2(b".", MNT_DETACH), "umount")
        os.chdir("/")

    def close(self) -> None:
        """Make all covers read-only."""
        for fd in self._holes.values():
            set_attributes(fd, RDONLY | CONFINED)
            os.close(fd)
        if self._plain >= 0:
            os.close(self._plain)
            check(libc.umount2(b"/proc", MNT_DETACH), "umount")


def make_directory(name: str, parent: int) -> None:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        pass  # on the way to another path


def attach_proc(made: int) -> None:
    """Show the processes of this view only."""
    attach(made, place := open_path("/proc"))
    os.close(place)
    os.close(made)
    for name in READ_ONLY_OF_PROC:
        try:
            fd = os.open(f"/proc/{name}", os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        mount = clone(fd)
        set_attributes(mount, RDONLY | CONFINED)
        attach(mount, fd)
        os.close(mount)
        os.close(fd)
