"""GoogleSheetsResource against a fake; every exchange is checked against Google's discovery documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.google_fake import CLIENT, REFRESH, SECRET, refused
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts
from tests.support.sheets_fake import SheetsFake

from ramet import Workspace
from ramet.backends import GoogleDriveConfig, GoogleDriveResource, GoogleSheetsConfig, GoogleSheetsResource
from ramet.backends.services.google.sheets_values import changed_runs, place
from ramet.testing import READING, Check, run_check

AT = "/s/owned/Budget__*"


@pytest.fixture
def sheets() -> Iterator[SheetsFake]:
    with SheetsFake() as running:
        running.results = {"=B2+B3": 1236}
        cells: Any = [["name", "sum", "ok"], ["Ada", 1234, True], ["Bob", 2], ["total", "=B2+B3"]]
        running.add_sheet("Budget", {"Jan": cells, "Ada's/Feb": [["a"]], "Empty": []}, rows=20, columns=4)
        running.add_sheet("Theirs", {"T": [["x"]]}, ownedByMe=False)
        running.add("Budget.txt", b"no sheet")
        yield running


def settings(sheets: SheetsFake, **more: Any) -> dict[str, Any]:
    return {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "refresh_token": REFRESH,
        "ttl": 600.0,
        "private": True,
        "token_url": f"{sheets.base}/token",
        **more,
    }


def mounted(sheets: SheetsFake, **more: Any) -> GoogleSheetsResource:
    return GoogleSheetsResource(
        GoogleSheetsConfig(base_url=sheets.base, drive_url=sheets.base, **settings(sheets, **more))
    )


def shell(sheets: SheetsFake, *scripts: str, resource: Any = None, **more: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/s": resource or mounted(sheets, **more)}, scripts)


def changes(sheets: SheetsFake) -> list[Any]:
    return [call for call in sheets.calls if call.method != "GET" and call.path != "/token"]


def grid(sheets: SheetsFake) -> Any:
    return next(iter(sheets.grids.values()))


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(sheets: SheetsFake, check: Check) -> None:
    run_check(check, lambda: mounted(sheets))


def test_tabs_as_csv(sheets: SheetsFake) -> None:
    found = shell(
        sheets,
        "ls /s/owned /s/shared | sed 's/__.*//'",
        f"ls {AT}",
        f"cat {AT}/Jan.csv",
        f"cat {AT}/Jan.formulas.csv",
        f"cat {AT}/Ada*Feb.csv {AT}/Empty.csv",
        f"jq -r '.sheets[0].properties.title' {AT}/sheet.json",
        f"query {AT} 'Jan!A2:B3'",
        "head -1 /s/README.md",
    )
    assert [one[1:] for one in found] == [("", 0)] * len(found)
    assert found[0][0].split() == ["/s/owned:", "Budget", "/s/shared:", "Theirs"]
    assert "Ada's%2FFeb.csv" in found[1][0] and "Jan.formulas.csv" in found[1][0]
    assert found[2][0] == 'name,sum,ok\nAda,"1,234",TRUE\nBob,2,\ntotal,"1,236",\n'
    assert found[3][0] == "name,sum,ok\nAda,1234,TRUE\nBob,2,\ntotal,=B2+B3,\n"
    assert found[4][0] == "a\n" and found[5][0] == "Jan\n" and found[6][0] == '["Ada","1,234"]\n["Bob","2"]\n'


def test_the_same_tabs_on_a_drive(sheets: SheetsFake) -> None:
    drive = GoogleDriveResource(GoogleDriveConfig(base_url=sheets.base, sheets_url=sheets.base, **settings(sheets)))
    found = shell(sheets, "cd '/s/My Drive/Budget.gsheet'; ls; head -2 Jan.csv; tail -c 5 Jan.csv", resource=drive)
    assert found[0][0].startswith("Ada's%2FFeb.csv\nEmpty.csv\nJan.csv\nsheet.json\nname,sum,ok\nAda")


def test_an_edit_sends_the_cells_that_differ(sheets: SheetsFake) -> None:
    found = shell(sheets, f"sed -i 's/^Bob,2,/Bob,=7,0.5/' {AT}/Jan.csv; cat {AT}/Jan.csv | sed -n 3p", writable=True)
    assert found[0] == ("Bob,=7,0.5\n", "", 0)
    (call,) = changes(sheets)
    assert call.json["valueInputOption"] == "RAW"
    assert call.json["data"] == [{"range": "'Jan'!B3", "majorDimension": "ROWS", "values": [["=7", 0.5]]}]
    assert grid(sheets)[1][1] == 1234  # "1,234" was not sent back as a text


def test_rows_that_are_gone_become_empty(sheets: SheetsFake) -> None:
    found = shell(
        sheets,
        f"head -2 {AT}/Jan.csv > /tmp/x; echo 'total,1' > /tmp/y; cat /tmp/x > {AT}/Jan.csv",
        f"sed -i /Bob/d {AT}/Jan.formulas.csv; cat {AT}/Jan.formulas.csv",
        writable=True,
    )
    assert "B4 holds a formula; edit the .formulas.csv" in found[0][1]
    assert found[1][0] == "name,sum,ok\nAda,1234,TRUE\ntotal,=B2+B3,\n"
    (call,) = changes(sheets)
    assert call.json["valueInputOption"] == "USER_ENTERED"


def test_a_sheet_that_is_too_small_grows(sheets: SheetsFake) -> None:
    (found,) = shell(
        sheets, f"seq 1 30 | sed 's/$/,b,c,d,e,f/' > {AT}/Empty.csv; wc -l < {AT}/Empty.csv", writable=True
    )
    assert found == ("30\n", "", 0)
    grown = changes(sheets)[0].json["requests"]
    assert [(one["appendDimension"]["dimension"], one["appendDimension"]["length"]) for one in grown] == [
        ("ROWS", 10),
        ("COLUMNS", 2),
    ]


def test_rows_are_appended_once(sheets: SheetsFake) -> None:
    found = shell(sheets, f"echo 'Cy,=1,\"a,b\"' >> {AT}/Jan.csv; tail -1 {AT}/Jan.csv", writable=True)
    assert found[0] == ('Cy,=1,"a,b"\n', "", 0)
    (call,) = changes(sheets)
    assert call.path.endswith(":append") and call.query["insertDataOption"] == "INSERT_ROWS"
    assert sheets.count("GET", "/values:batchGet") == 1  # only the look afterwards
    sheets.fault("POST", ":append", lost=True)
    (lost,) = shell(sheets, f"echo 'Di,2' >> {AT}/Jan.csv", writable=True)
    assert "may have been made" in lost[1] and [row[0] for row in grid(sheets)].count("Di") == 1


def test_two_hundred_thousand_rows(sheets: SheetsFake) -> None:
    rows: Any = [[number, "x"] for number in range(200_000)]
    rows[70_000:95_000] = [[]] * 25_000
    sheets.add_sheet("Large", {"L": rows}, rows=200_000)
    found = shell(
        sheets,
        "wc -l < /s/owned/Large__*/L.csv; tail -1 /s/owned/Large__*/L.csv",
        "head -1 /s/owned/Large__*/L.csv",
        "echo a,b >> /s/owned/Large__*/L.csv",
    )
    assert found[0][0] == '200000\n"199,999",x\n' and found[1][0] == "0,x\n"
    assert sheets.count("GET", "/values:batchGet") <= 45
    (edit,) = shell(sheets, "echo a,b >> /s/owned/Large__*/L.csv", writable=True)
    assert edit[1:] == ("", 0) and rows[-1] == ["a", "b"]


def test_a_change_by_somebody_else_is_not_overwritten(sheets: SheetsFake) -> None:
    async def act() -> str:
        ws = Workspace({"/s": mounted(sheets, writable=True)})
        try:
            await ws.execute(f"cat {AT}/Jan.csv")
            grid(sheets)[2][1] = 99
            return (await ws.execute(f"echo x,y > {AT}/Jan.csv")).stderr.decode()
        finally:
            await ws.close()

    assert "Stale file handle" in asyncio.run(act()) and changes(sheets) == []


def test_post_comments_and_rmdir_trashes(sheets: SheetsFake) -> None:
    found = shell(
        sheets,
        f"post {AT} -m 'Why 1,234?'; jq -r .content {AT}/comments.jsonl",
        f"rmdir {AT}; ls /s/owned",
        writable=True,
    )
    assert found[0][0].endswith("Why 1,234?\n") and found[1][:2] == ("", "")
    assert not any(call.method == "DELETE" for call in sheets.calls)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refused(403, "scopes", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"), "https://www.googleapis.com/auth/spreadsheets"),
        (refused(400, "Unable to parse range", "badRequest"), "Google says Unable to parse range"),
        (Reply(401, b""), "127.0.0.1 refuses the token"),
    ],
)
def test_refusals_say_what_to_do(sheets: SheetsFake, reply: Reply, words: str) -> None:
    sheets.fault("GET", "/values:", reply, times=9)
    (found,) = shell(sheets, f"cat {AT}/Jan.csv")
    assert words in found[1] and found[2] != 0


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"printf '\\377' > {AT}/Jan.csv", "not UTF-8"),
        (f"printf 'a,\"b' > {AT}/Jan.csv", "this is not CSV"),
        (f"cd {AT}; echo x > New.csv", "only the service makes files here"),
        (f"cat {AT}/Nope.csv", "No such file"),
        (f"echo x > {AT}/sheet.json", "Read-only file system"),
        ("query /s 'Jan!A1'", "name a file"),
        ("mkdir /s/owned/New", "only the service makes directories"),
        ("query /s 'POST /v4/spreadsheets' '{}'", "that takes -w"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(sheets: SheetsFake, script: str, words: str) -> None:
    (found,) = shell(sheets, script, writable=True)
    assert words in found[1] and found[2] != 0 and changes(sheets) == []


def test_cells_that_differ() -> None:
    assert changed_runs([["a", "b"], ["c"]], [["a", "x"], ["c", "d"]]) == [(0, 1, ["x"]), (1, 1, ["d"])]
    assert changed_runs([["a"], ["b", "c"]], [["a"]]) == [(1, 0, ["", ""])]
    assert [place(0, column) for column in (0, 25, 26, 701, 702)] == ["A1", "Z1", "AA1", "ZZ1", "AAA1"]


def test_the_secrets_are_nowhere(sheets: SheetsFake) -> None:
    (found,) = shell(sheets, f"cat {AT}/Jan.csv")
    shown = repr(mounted(sheets)) + repr(mounted(sheets).describe()) + "".join(map(str, found))
    assert "hunter2" not in shown and CLIENT in shown


def test_a_branch_sends_nothing_before_its_commit(sheets: SheetsFake) -> None:
    async def act() -> list[Any]:
        ws = Workspace({"/s": mounted(sheets, writable=True)})
        try:
            branch = ws.branch()
            await branch.execute(f"sed -i 's/^Bob,2/Bob,3/' {AT}/Jan.csv; echo Cy,4 >> {AT}/Jan.csv")
            before = changes(sheets)
            await branch.commit()
            return [before, grid(sheets)[2][1], grid(sheets)[-1][:2]]
        finally:
            await ws.close()

    assert asyncio.run(act()) == [[], 3, ["Cy", 4]]
