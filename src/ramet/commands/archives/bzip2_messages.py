"""Messages of bzip2 about damaged files."""

from __future__ import annotations

RECOVER = """
You can use the `bzip2recover' program to attempt to recover
data from undamaged sections of corrupted files.

"""
GARBAGE = "trailing garbage after EOF ignored"
_CORRUPT = """
It is possible that the compressed file(s) have become corrupted.
You can use the -tvv option to test integrity of such files.
"""
_TESTS = {
    "not in format": "bad magic number (file not created by bzip2)",
    "unexpected end of file": "file ends unexpectedly",
    "trailing garbage": GARBAGE,
}


def tested(name: str, longest: int) -> str:
    """Return the prefix of a verbose test result."""
    return f"  {name}: {' ' * (longest - len(name))}"


def test_result(corrupt: str) -> str:
    """Return the result of a test."""
    return _TESTS.get(corrupt, "data integrity (CRC) error in data")


def broken(program: str, name: str, output: str, corrupt: str, left: tuple[int, int]) -> str:
    """Return why the program gives up; `left` is how many files there are, and how many of them are still to do."""
    if "end" in corrupt:
        why = "No such file or directory" if output else "Success"
        if name == "(stdin)":
            why = "Inappropriate ioctl for device"
        guess = "\tperhaps it is corrupted?  *Possible* reason follows."
        said = f"Compressed file ends unexpectedly;\n{guess}\n{program}: {why}"
    else:
        said = "Data integrity error when decompressing."
    files = f"\tInput file = {name}, output file = {output or '(stdout)'}\n"
    deleted = f"{program}: Deleting output file {output}, if it exists.\n" if output else ""
    given, todo = left
    warning = (
        f"{program}: WARNING: some files have not been processed:\n"
        f"{program}:    {given} specified on command line, {todo} not processed yet.\n\n"
        if todo > 0
        else ""
    )
    return f"\n{program}: {said}\n{files}{_CORRUPT}{RECOVER}{deleted}{warning}"
