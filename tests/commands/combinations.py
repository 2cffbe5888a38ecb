"""Writes the tables of the commands: every option with several kinds of input; the real tools fill in the rest.

python -m tests.commands.combinations      writes tables whose rows are new without expectations
python -m tests.spec.record TABLE...       records what the real tools answer
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.spec.table import Row, dump, load

CASES = Path(__file__).parent / "recorded"

INPUTS = {
    "plain": r"b 2 x\na 10 y\n\nc 1 z\na 10 y\na 10 y\n",
    "no newline": r"one\ntwo",
    "empty": r"",
    "crlf": r"dos\r\nfile\r\n",
    "bytes": r"\xff\xfe\x00a\nh\xc3\xa9llo \xe4\xb8\x96\n\x01\x7f\n",
    "tabs": r"\tindent\n    spaces\ta\n  two  gaps \n\n\n\nend\n",
}

FILTERS: dict[str, list[str]] = {
    "cat": ["", "-n", "-b", "-s", "-E", "-T", "-v", "-A", "-e", "-t", "-sn", "--number --squeeze-blank", "-", "- -"],
    "tac": ["", "-s ' '", "-b", "-r -s '[0-9]'"],
    "rev": [""],
    "nl": ["", "-ba", "-bn", "-w3 -s:", "-v5 -i2", "-nln", "-nrz", "-bpa", "-l2 -ba"],
    "head": [
        "",
        "-n1",
        "-n 2",
        "-2",
        "-c3",
        "-n -1",
        "-c -2",
        "-z -n1",
        "-v",
        "-q -n1",
        "--lines=1",
        "--bytes=2",
        "-n0",
    ],
    "tail": ["", "-n1", "-2", "-n +2", "+2", "-c3", "-c +3", "-z -n1", "-v", "--lines=+1", "-n0", "-q"],
    "wc": ["", "-l", "-w", "-c", "-m", "-L", "-lw", "-", "--lines --bytes"],
    "sort": [
        "",
        "-r",
        "-n",
        "-k2",
        "-k2n",
        "-k2,2nr",
        "-u",
        "-f",
        "-d",
        "-i",
        "-g",
        "-h",
        "-V",
        "-M",
        "-b",
        "-s -k1,1",
        "-t ' ' -k3",
        "-k1,1 -k2,2n",
        "-c",
        "-C",
        "-z",
        "-k1.1,1.1",
        "-k2.2",
        "-nu",
        "-rn",
        "--sort=version",
        "-m",
        "-k 2,2 -k 1,1r",
        "-bk2",
        "-t '\t' -k2",
    ],
    "uniq": [
        "",
        "-c",
        "-d",
        "-u",
        "-D",
        "-i",
        "-f1",
        "-s2",
        "-w1",
        "--group",
        "--group=append",
        "--all-repeated=prepend",
        "-z",
        "-cd",
    ],
    "cut": [
        "-c1",
        "-c2-3",
        "-b1-2",
        "-f1",
        "-d' ' -f2",
        "-d' ' -f1,3",
        "-d' ' -f2-",
        "-d' ' -f-2",
        "-s -d' ' -f1",
        "-c1,3 --output-delimiter=:",
        "--complement -c1",
        "-d' ' --complement -f2",
        "-z -c1",
        "-d' ' -f1,2 --output-delimiter=,",
        "-d a -f2",
    ],
    "tr": [
        "a-z A-Z",
        "-d a",
        "-s ' '",
        "-d '\\n'",
        "-c 'a-z\\n' .",
        "-cd 'a-z'",
        "'[:lower:]' '[:upper:]'",
        "-t abc x",
        "-s a-z",
        "'\\n' ' '",
        "ab '[x*]'",
        "'[:space:]' _",
    ],
    "paste": ["-s", "-s -d,", "- -", "-d: - - -", "-z", "-d '\\n' - -"],
    "expand": ["", "-t4", "-i", "-t 2,6", "-4"],
    "unexpand": ["", "-a", "-t4", "--first-only -a"],
    "fold": ["", "-w5", "-s -w6", "-b -w4", "-5"],
    "fmt": ["", "-w 10", "-s", "-u"],
    "column": ["", "-t", "-t -s ' '", "-t -o '|'", "-x -c 40", "-t -R 1", "-t -N A,B,C"],
    "od": ["", "-c", "-An -tx1", "-tx1z", "-b", "-d", "-x", "-j1 -N4 -c", "-Ad -tu1", "-a", "-v -w4 -tx1", "-td2 -tc"],
    "hexdump": ["", "-C", "-c", "-b", "-x", "-d", "-o", "-n4 -C", "-v -e '1/1 \"%02x \"'"],
    "xxd": ["", "-p", "-b", "-c4", "-g1", "-u", "-l3", "-i", "-e", "-s1"],
    "base64": ["", "-w0", "-w4", "-d -i"],
    "base32": ["", "-w8"],
    "basenc": ["--base16", "--base64url", "--base32hex", "--base2msbf -w 16", "--base2lsbf"],
    "md5sum": ["", "--tag", "-b"],
    "sha1sum": [""],
    "sha224sum": [""],
    "sha256sum": ["", "--tag"],
    "sha384sum": [""],
    "sha512sum": [""],
    "b2sum": ["", "-l 64"],
    "cksum": ["", "-a md5", "-a bsd", "-a sysv", "-a sha256 --untagged"],
    "sum": ["", "-s"],
    "strings": ["", "-n2", "-t x -n2"],
    "tee": ["", "out"],
    "shuf": ["-n0"],
    "comm": ["- /dev/null", "-1 - /dev/null", "--total - /dev/null"],
    "join": ["- /dev/null", "-a1 - /dev/null", "-v1 - /dev/null"],
    "split": ["-l1 - p; cat paa 2>/dev/null; ls", "-b2 - p; ls", "-n2 - p; ls", "-d -l2 - q; ls", "-C4 - r; ls"],
    "xargs": ["", "-n1", "-L1", "-I{} echo '<{}>'", "-r echo x", "-t echo", "-n2 printf '[%s]'", "-s 20 echo"],
    "cmp": ["- /dev/null", "-s - /dev/null"],
    "diff": [
        "- /dev/null",
        "-u --label a --label b - /dev/null",
        "-y - /dev/null",
        "-q - /dev/null",
        "-e - /dev/null",
        "-n /dev/null -",
    ],
    "gzip": ["-c | gzip -dc", "-1 | zcat", "-9 | gunzip"],
    "bzip2": ["-c | bzip2 -dc"],
    "xz": ["-c | xz -dc"],
    "zstd": ["-qc | zstd -qdc"],
    "numfmt": ["--invalid=ignore", "--field=2 --invalid=ignore --to=si", "--field=2 --invalid=ignore --padding=5"],
    "dd": ["status=none", "status=none bs=2 count=2", "status=none conv=ucase", "status=none skip=1 bs=1"],
    "iconv": ["-c -f utf-8 -t ascii", "-f latin1 -t utf-8"],
    "dos2unix": [],
}


def _filters() -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for command, options in FILTERS.items():
        rows = []
        for option in options:
            for kind, data in INPUTS.items():
                words = f"{command} {option}".strip()
                rows.append(Row(f"{words.splitlines()[0]} of {kind}", f"printf '%b' '{data}' | {words}\n"))
        out[command] = rows
    return {name: rows for name, rows in out.items() if rows}


def _scripts() -> dict[str, list[Row]]:
    """Scripts of one line each, from `scripts.txt`: `# name` begins a table, `+ line` prepares what follows."""
    out: dict[str, list[Row]] = {}
    table, setup = "", ""
    for line in (Path(__file__).parent / "scripts.txt").read_text().splitlines():
        if line.startswith("# "):
            table, setup = line[2:], ""
        elif line.startswith("+ "):
            setup = line[2:] + "\n"
        elif line:
            out.setdefault(table, []).append(Row(line, setup + line + "\n"))
    return out


def main() -> None:
    tables = _filters()
    for name, rows in _scripts().items():
        tables.setdefault(name, []).extend(rows)
    for name, rows in tables.items():
        path = CASES / f"{name}.spec"
        known = {row.script: row for row in load(path)} if path.exists() else {}
        seen: dict[str, int] = {}
        final = []
        for row in rows:
            title = re.sub(r"\s+", " ", row.title)[:90]
            seen[title] = seen.get(title, 0) + 1
            number = f" ({seen[title]})" if seen[title] > 1 else ""
            old = known.get(row.script, row)
            final.append(Row(title + number, row.script, old.status, old.stdout, old.stderr, old.reason))
        path.write_bytes(dump(final).encode("utf-8"))


if __name__ == "__main__":
    main()
