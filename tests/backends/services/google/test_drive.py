"""GoogleDriveResource against a fake; every exchange is checked against Google's discovery documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import descriptions
from tests.support.drive_fake import FOLDER, DriveFake
from tests.support.google_fake import CLIENT, REFRESH, SECRET, refused
from tests.support.service_fake import Reply
from tests.support.service_shell import run_scripts

from ramet import Workspace
from ramet.backends import GoogleDriveConfig, GoogleDriveResource
from ramet.backends.services.google import drive_upload
from ramet.core.paths import Path
from ramet.core.stat import Attrs
from ramet.testing import READING, Check, run_check

MY = "'/d/My Drive'"
DOCUMENT = "application/vnd.google-apps.document"
SHORTCUT = "application/vnd.google-apps.shortcut"


@pytest.fixture
def drive() -> Iterator[DriveFake]:
    with DriveFake() as running:
        reports = running.folder("Reports")
        running.add("a.txt", b"hello\n")
        running.add("q3.csv", b"a,b\n1,2\n", reports, "text/csv")
        plan = running.add("Plan", None, mime=DOCUMENT)
        running.exports[plan, "text/markdown"] = b"# Plan\n\nShip in *May*.\n"
        running.add("link", None, mime=SHORTCUT, shortcutDetails={"targetId": plan, "targetMimeType": DOCUMENT})
        running.add("Form", None, mime="application/vnd.google-apps.form")
        running.drives.append({"id": "0ATeam", "name": "Team", "capabilities": {"canEdit": True}})
        running.add("team.txt", b"team\n", "0ATeam", driveId="0ATeam")
        running.add("theirs.txt", b"theirs\n", "", ownedByMe=False, sharedWithMe=True)
        running.changed.clear()
        yield running


def mounted(drive: DriveFake, **settings: Any) -> GoogleDriveResource:
    given: dict[str, Any] = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "refresh_token": REFRESH,
        "ttl": 600.0,
        "token_url": f"{drive.base}/token",
        "sheets_url": drive.base,
        **settings,
    }
    return GoogleDriveResource(GoogleDriveConfig(base_url=drive.base, private=True, **given))


def shell(drive: DriveFake, *scripts: str, **settings: Any) -> list[tuple[str, str, int]]:
    return run_scripts({"/d": mounted(drive, **settings)}, scripts)


def changes(drive: DriveFake) -> list[str]:
    return [f"{call.method} {call.path}" for call in drive.calls if call.method != "GET" and call.path != "/token"]


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_the_reading_suite(drive: DriveFake, check: Check) -> None:
    run_check(check, lambda: mounted(drive))


def test_the_tree(drive: DriveFake) -> None:
    found = shell(
        drive,
        "ls /d",
        f"ls {MY}",
        f"cat {MY}/a.txt {MY}/Plan.gdoc.md {MY}/Reports/q3.csv",
        "cat '/d/Shared drives/Team/team.txt'",
        "cat '/d/Shared with me/theirs.txt'",
        f"cat {MY}/link; readlink {MY}/link",
        f"jq -r .webViewLink {MY}/Form.gform.json",
        f"stat -c '%s %Y' {MY}/a.txt",
    )
    assert [one[1:] for one in found] == [("", 0)] * len(found)
    assert found[0][0].split("\n")[:4] == ["My Drive", "README.md", "Shared drives", "Shared with me"]
    assert found[1][0].split() == ["Form.gform.json", "Plan.gdoc.md", "Reports", "a.txt", "link"]
    assert found[2][0] == "hello\n# Plan\n\nShip in *May*.\na,b\n1,2\n" and found[3][0] == "team\n"
    assert found[4][0] == "theirs\n" and found[5][0].startswith("# Plan") and ".by-id/" in found[5][0]
    assert "docs.google.com" in found[6][0] and found[7][0] == "6 1777799642\n"


def test_a_thousand_files_are_few_requests(drive: DriveFake) -> None:
    for number in range(1000):
        drive.add(f"file{number:04}.txt", b"x")
    found = shell(drive, f"ls -l {MY} | wc -l", f"ls -l {MY} | wc -l")
    assert found[0][0] == found[1][0] == "1006\n"
    assert (
        drive.count("GET", "/files$") == 2 and len(drive.calls) <= 6
    )  # token, root, changes, two pages, the target of a link


def test_a_second_walk_is_one_request_for_changes(drive: DriveFake) -> None:
    for number in range(100):
        inner = drive.folder(f"dir{number:03}")
        drive.add("x.txt", b"x", drive.folder("sub", inner))

    async def act() -> tuple[int, list[str], str]:
        resource = mounted(drive)
        ws = Workspace({"/d": resource})
        try:
            count = (await ws.execute(f"find {MY} -name x.txt | wc -l")).stdout
            assert count == b"100\n"
            first = len(drive.calls)
            drive.change(drive.named("a.txt")[0]["id"], name="b.txt")
            resource.forget()
            names = [name async for name, _ in resource.scan(Path("/My Drive"))]
            async for name, _ in resource.scan(Path("/My Drive/dir007/sub")):
                names.append(name)
            second = [call.path for call in drive.calls[first:]]
            return first, second, " ".join(names)
        finally:
            await ws.close()

    first, second, names = asyncio.run(act())
    assert first <= 14 and second == ["/drive/v3/changes"]
    assert "b.txt" in names and "a.txt" not in names and names.endswith("x.txt")


def test_changes_of_others_are_seen(drive: DriveFake) -> None:
    async def act() -> list[str]:
        resource = mounted(drive, ttl=0.0)
        try:
            seen = []

            async def look() -> None:
                seen.append(" ".join(sorted([name async for name, _ in resource.scan(Path("/My Drive"))])))

            await look()
            drive.change(drive.named("Reports")[0]["id"], trashed=True)
            await look()
            drive.add("new.txt", b"n")
            await look()
            moved = drive.named("a.txt")[0]["id"]
            drive.change(moved, parents=[drive.folder("Other")])
            await look()
            drive.fault("GET", "/changes$", refused(404, "pageToken", "notFound"))
            drive.add("late.txt", b"n")
            await look()
            return seen
        finally:
            await resource.close()

    seen = asyncio.run(act())
    assert seen == [
        "Form.gform.json Plan.gdoc.md Reports a.txt link",
        "Form.gform.json Plan.gdoc.md a.txt link",
        "Form.gform.json Plan.gdoc.md a.txt link new.txt",
        "Form.gform.json Other Plan.gdoc.md link new.txt",
        "Form.gform.json Other Plan.gdoc.md late.txt link new.txt",
    ]


def test_a_folder_that_is_gone_meanwhile(drive: DriveFake) -> None:
    id = drive.named("Reports")[0]["id"]

    async def act() -> None:
        resource = mounted(drive, ttl=0.0)
        try:
            names = await resource._index.listing((await resource._paths.top(Path("/x"))).id, Path("/x"))
            assert "Reports" in names
            drive.change(id, trashed=True)
            with pytest.raises(FileNotFoundError):
                await resource._index.listing(id, Path("/My Drive/Reports"))
        finally:
            await resource.close()

    asyncio.run(act())


def test_equal_and_awkward_names(drive: DriveFake) -> None:
    ids = [drive.add("same.txt", f"{number}".encode()) for number in range(2)]
    drive.add("O'Brien\\x.txt", b"quoted")
    inside = drive.folder("it's \\ here")
    drive.add("a/b.txt", b"slash", inside)
    drive.add("n" * 300 + ".txt", b"long")
    found = shell(
        drive,
        f"ls {MY} | grep same",
        f"cat {MY}/same__{ids[1]}.txt",
        f"cat {MY}/same.txt",
        f"cat {MY}/O*",
        f"cat {MY}/it*/*",
        f"cat {MY}/nnn*",
        f"echo x > {MY}/same.txt",
        writable=True,
    )
    assert found[0][0].split() == sorted(f"same__{id}.txt" for id in ids) and found[1][0] == "1"
    assert "No such file" in found[2][1] and found[3][0] == "quoted" and found[4][0] == "slash"
    assert found[5][0] == "long" and "several files have this name" in found[6][1] and changes(drive) == []


def test_ranges_ask_for_parts(drive: DriveFake) -> None:
    drive.add("big.bin", bytes(range(256)) * 4096)
    found = shell(drive, f"head -c 3 {MY}/big.bin | xxd -p; tail -c 2 {MY}/big.bin | xxd -p")
    assert found[0][0] == "000102\nfeff\n"

    async def act() -> bytes:
        resource = mounted(drive)
        try:
            blocks = resource.read(Path("/My Drive/big.bin"), 1000, 1010)
            return b"".join([block async for block in blocks])
        finally:
            await resource.close()

    assert asyncio.run(act()) == bytes(range(256))[232:242]
    assert drive.calls[-1].headers["range"] == "bytes=1000-1009"
    drive.fault("GET", f"{drive.named('big.bin')[0]['id']}$", Reply(200, bytes(range(256)) * 4096))
    drive.faults[-1].matches = lambda call: call.query.get("alt") == "media"
    assert asyncio.run(act()) == bytes(range(256))[232:242]  # from a server that knows no ranges


# ------------------------------------------------------------------------------------------------------------ changing


def test_files_are_written_moved_copied_and_trashed(drive: DriveFake) -> None:
    id = drive.named("a.txt")[0]["id"]
    found = shell(
        drive,
        f"cd {MY}; echo one > new.txt; echo two >> new.txt; cat new.txt",
        f"cd {MY}; echo changed > a.txt; cat a.txt",
        f"cd {MY}; mkdir -p x/y; mv new.txt x/y/moved.txt; cat x/y/moved.txt; ls",
        f"cd {MY}; cp a.txt x/copy.txt; cat x/copy.txt",
        f"cd {MY}; mv x/copy.txt a.txt; cat a.txt",
        f"cd {MY}; rm -r x; ls",
        f"cd {MY}; mv Reports Renamed; cat Renamed/q3.csv",
        f"cd {MY}; mv Plan.gdoc.md Roadmap.gdoc.md; ls | grep gdoc; mv Roadmap.gdoc.md Roadmap.md",
        f"cd {MY}; touch -d 2020-01-01T00:00:00Z a.txt; stat -c %Y a.txt",
        writable=True,
    )
    assert [one[0] for one in found[:2]] == ["one\ntwo\n", "changed\n"]
    assert drive.contents[id] == b"changed\n" and drive.files[id]["trashed"]  # another one took its place
    assert "moved.txt" not in found[2][0] and found[2][0].startswith("one\ntwo\n") and found[3][0] == "changed\n"
    assert found[4][0] == "changed\n" and "x\n" not in found[5][0] and found[6][0] == "a,b\n1,2\n"
    assert found[7][0] == "Roadmap.gdoc.md\n" and "keep the ending .gdoc.md" in found[7][1]
    assert found[8][0] == "1577836800\n"
    assert [file["name"] for file in drive.files.values() if file["trashed"]].count("moved.txt") == 1
    assert not any(call.method == "DELETE" for call in drive.calls)


def test_a_document_from_markdown(drive: DriveFake) -> None:
    found = shell(drive, f"cd {MY}; echo '# New' > New.gdoc.md; cat New.gdoc.md; echo x > New.gdoc.md", writable=True)
    (made,) = drive.named("New")
    assert made["mimeType"] == DOCUMENT and found[0][0] == "# New\n" and "mount Google Docs" in found[0][1]


def test_an_edit_by_somebody_else_is_not_overwritten(drive: DriveFake) -> None:
    id = drive.named("a.txt")[0]["id"]

    async def act() -> str:
        resource = mounted(drive, writable=True)
        try:
            stat = await resource.stat(Path("/My Drive/a.txt"))
            drive.change(id, content=b"theirs\n")
            with pytest.raises(OSError, match="Stale"):
                await resource.write(Path("/My Drive/a.txt"), b"mine\n", if_version=stat.version)
            now = await resource.stat(Path("/My Drive/a.txt"))
            await resource.write(Path("/My Drive/a.txt"), b"mine\n", if_version=now.version)
            return drive.contents[id].decode()
        finally:
            await resource.close()

    assert asyncio.run(act()) == "mine\n"


def test_a_branch_sends_nothing_before_its_commit(drive: DriveFake) -> None:
    async def act() -> list[Any]:
        ws = Workspace({"/d": mounted(drive, writable=True)})
        try:
            aborted = ws.branch()
            await aborted.execute(f"rm {MY}/a.txt; echo x > {MY}/b.txt")
            await aborted.abort()
            branch = ws.branch()
            await branch.execute(f"cd {MY}; echo new > n.txt; rm a.txt")
            before = changes(drive)
            await branch.commit()
            return [
                before,
                [file["name"] for file in drive.files.values() if file["trashed"]],
                bool(drive.named("n.txt")),
            ]
        finally:
            await ws.close()

    assert asyncio.run(act()) == [[], ["a.txt"], True]


# ------------------------------------------------------------------------------------------------------------- uploads


async def _instantly(seconds: float) -> None:
    return None


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {"chunk": 512 << 10, "small": 1 << 10, "sleep": _instantly}
    monkeypatch.setattr(drive_upload.DriveUpload.__init__, "__kwdefaults__", defaults)


CONTENT = bytes(range(251)) * 6000
"""Three parts, the last of which is shorter."""


async def _blocks(content: bytes) -> Any:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    "cuts",
    [
        [0],
        [1],
        [262_143],
        [262_144],
        [262_145],
        [524_287],
        [524_288, 0],
        [1, 1, 1],
        [300_000, 10, 262_144],
        [524_288] * 3,
        [524_288, 524_288, 1000],
        [524_288, 524_288, 457_423],
        [524_288, 524_288, 457_424],
    ],
)
@pytest.mark.parametrize("target", ["new.bin", "a.txt"])
def test_an_upload_survives_cuts(drive: DriveFake, cuts: list[int], target: str) -> None:
    drive.cuts.extend(cuts)

    async def act() -> None:
        resource = mounted(drive, writable=True)
        try:
            stat = await resource.write(Path(f"/My Drive/{target}"), _blocks(CONTENT))
            assert stat.size == len(CONTENT)
        finally:
            await resource.close()

    asyncio.run(act())
    (file,) = drive.named(target)
    assert drive.contents[file["id"]] == CONTENT and len(drive.sessions) == 1


@pytest.mark.usefixtures("small_parts")
def test_the_lost_answer_of_the_last_part(drive: DriveFake) -> None:
    async def act(data: Any) -> None:
        resource = mounted(drive, writable=True)
        try:
            await resource.write(Path("/My Drive/new.bin"), data)
        finally:
            await resource.close()

    drive.fault("PUT", "/session/", lost=True, times=1)
    drive.faults[-1].matches = lambda call: call.headers.get("content-range", "").endswith(f"/{len(CONTENT)}")
    asyncio.run(act(CONTENT))
    assert len(drive.named("new.bin")) == 1 and drive.contents[drive.named("new.bin")[0]["id"]] == CONTENT


@pytest.mark.usefixtures("small_parts")
def test_an_upload_that_cannot_end_changes_nothing(drive: DriveFake) -> None:
    drive.cuts.extend([0] * 50)

    async def act() -> None:
        resource = mounted(drive, writable=True)
        try:
            with pytest.raises(OSError, match="127"):
                await resource.write(Path("/My Drive/a.txt"), CONTENT)
            drive.cuts.clear()
            drive.fault("PUT", "/session/", refused(404, "gone", "notFound"))
            with pytest.raises(OSError, match="ended the session"):
                await resource.write(Path("/My Drive/a.txt"), CONTENT)
        finally:
            await resource.close()

    asyncio.run(act())
    assert drive.contents[drive.named("a.txt")[0]["id"]] == b"hello\n"


def test_a_new_file_whose_answer_is_lost_is_not_made_twice(drive: DriveFake) -> None:
    drive.fault("POST", "/upload/", lost=True)
    drive.fault("POST", "/drive/v3/files$", lost=True)
    found = shell(drive, f"echo x > {MY}/new.txt", f"mkdir {MY}/dir", writable=True)
    assert "may have been made" in found[0][1] and "may have been made" in found[1][1]
    assert len(drive.named("new.txt")) == 1 and len(drive.named("dir")) == 1


# ---------------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    "reply",
    [
        refused(429, "Too many", "rateLimitExceeded"),
        refused(403, "Slow", "rateLimitExceeded"),
        refused(403, "Slow", "userRateLimitExceeded"),
        refused(500, "Backend", "backendError"),
        Reply(503, b""),
        None,
        refused(401, "expired", "authError"),
    ],
)
def test_what_passes_is_asked_again(drive: DriveFake, reply: Reply | None) -> None:
    drive.fault("GET", "/files$", reply)
    assert "a.txt" in shell(drive, f"ls {MY}")[0][0]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refused(401, "Invalid Credentials", "authError"), "127.0.0.1 refuses the token: Invalid Credentials"),
        (refused(403, "scopes", "insufficientPermissions"), "sign in again with https://www.googleapis.com/auth/drive"),
        (refused(403, "off", "accessNotConfigured"), "enable it in the Cloud console"),
        (refused(403, "quota", "dailyLimitExceeded"), "wait until tomorrow"),
        (refused(404, "gone", "notFound"), "not there, or not shared with this account"),
        (refused(400, "Invalid Value", "invalid"), "Google says Invalid Value"),
    ],
)
def test_refusals_say_what_to_do(drive: DriveFake, reply: Reply, words: str) -> None:
    drive.fault("GET", "/files$", reply, times=9)
    (found,) = shell(drive, f"ls {MY}")
    assert words in found[1] and found[2] != 0


def test_a_revoked_refresh_token_asks_to_sign_in(drive: DriveFake) -> None:
    drive.grant = Reply(400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."})
    (found,) = shell(drive, f"ls {MY}")
    assert "the refresh token is refused: invalid_grant; sign in again" in found[1] and len(drive.grants) == 1


def test_an_export_over_10_mb_names_the_link(drive: DriveFake) -> None:
    id = drive.named("Plan")[0]["id"]
    drive.exports[id, "text/markdown"] = bytes((10 << 20) + 1)
    (found,) = shell(drive, f"cat {MY}/Plan.gdoc.md")
    assert f"open https://docs.google.com/export?id={id}" in found[1] and found[2] == 1


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"cat {MY}/nope", "No such file or directory"),
        ("cat /d/.by-id/nope-nope", "not there, or not shared"),
        ("mkdir '/d/Shared drives/New'", "make it in 'My Drive'"),
        ("echo x > '/d/Shared with me/x.txt'", "make it in 'My Drive'"),
        ("rmdir '/d/My Drive'", "not a file of a folder"),
        (f"rmdir {MY}/Reports", "Directory not empty"),
        (f"mv {MY}/Reports {MY}/Reports/x", "to a subdirectory of itself"),
        (f"echo x > {MY}/Form.gform.json", "mount Google Docs or Sheets"),
        (f"cat {MY}/a.txt/b", "Not a directory"),
        ("query /d 'PATCH /drive/v3/files/x' '{}'", "that takes -w"),
        ("query /d 'GET /gmail/v1/x'", "begins with"),
        ("query -w /d 'PATCH /drive/v3/files/x' '{nope'", "this is not JSON"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(drive: DriveFake, script: str, words: str) -> None:
    (found,) = shell(drive, script, writable=True)
    assert words in found[1] and found[2] != 0 and changes(drive) == []


def test_a_full_drive_says_so(drive: DriveFake) -> None:
    drive.fault("POST", "/upload/", refused(403, "The storage quota has been exceeded.", "storageQuotaExceeded"))
    (found,) = shell(drive, f"echo x > {MY}/x.txt", writable=True)
    assert "storage quota has been exceeded" in found[1]


def test_query_searches_and_asks(drive: DriveFake) -> None:
    found = shell(
        drive,
        "cd /d; query . hello | jq -r .path | xargs cat",
        "query /d \"name contains 'q3'\" | jq -r .name",
        "query /d 'GET /drive/v3/about?fields=user' | jq -r .user.displayName",
        "query -n 2 /d \"name contains '.'\" | wc -l",
        f"query -w /d 'PATCH /drive/v3/files/{drive.named('a.txt')[0]['id']}' '{{\"starred\": true}}' | jq .id",
        writable=True,
    )
    assert [one[0] for one in found[:4]] == ["hello\n", "q3.csv\n", "Ada\n", "2\n"] and found[4][2] == 0


def test_words_are_not_taken_for_terms(drive: DriveFake) -> None:
    drive.add("n.txt", b"it's in a = b")
    found = shell(drive, 'query /d "it\'s in a = b" | jq -r .name', "query /d \"'0Aroot' in parents\" | wc -l")
    assert found[0] == ("n.txt\n", "", 0) and int(found[1][0]) == 6


def test_a_folder_as_the_whole_mount(drive: DriveFake) -> None:
    id = drive.named("Reports")[0]["id"]
    drive.add("out", None, id, SHORTCUT, shortcutDetails={"targetId": drive.named("a.txt")[0]["id"]})
    found = shell(
        drive,
        "ls /d; cat /d/q3.csv; head -1 /d/README.md",
        f"cat /d/.by-id/{drive.named('Plan')[0]['id']}",
        "cat /d/out",
        folder_id=id,
    )
    assert found[0][0].startswith("README.md\nout\nq3.csv\na,b\n") and "No such file" in found[1][1]
    assert found[2][0] == "hello\n"
    (missing,) = shell(drive, "ls /d", folder_id="nope-nope-nope")
    assert "the folder nope-nope-nope is not there" in missing[1]


def test_shifting_pages(drive: DriveFake) -> None:
    drive.page = 7
    for number in range(30):
        drive.add(f"f{number}.txt", b"x")
    listing = drive._list

    def shifting(call: Any) -> Reply:
        answer = listing(call)
        first = next(id for id, file in drive.files.items() if file["mimeType"] != FOLDER)
        drive.files[first] = drive.files.pop(first)
        return answer

    drive.routes[1] = ("GET", drive.routes[1][1], shifting)
    names = shell(drive, f"ls {MY}")[0][0].splitlines()
    assert len(names) == len(set(names)) >= 28


def test_unknown_attributes_are_refused(drive: DriveFake) -> None:
    async def act() -> None:
        resource = mounted(drive, writable=True)
        try:
            with pytest.raises(OSError, match="not supported"):
                await resource.setattr(Path("/My Drive/a.txt"), Attrs(mode=0o600))
        finally:
            await resource.close()

    asyncio.run(act())


def test_the_check_of_exchanges_can_fail(drive: DriveFake) -> None:
    if drive._checker is None:
        pytest.skip("Google's discovery documents are not there: make descriptions")
    shell(drive, "query /d 'GET /drive/v3/about?fields=shoe&size=1'")
    assert "shoe" in str(descriptions.problems) and "no parameter size" in str(descriptions.problems)
    descriptions.problems.clear()


def test_the_secrets_are_nowhere(drive: DriveFake, tmp_path: Any) -> None:
    async def act() -> str:
        resource = mounted(drive, writable=True)
        ws = Workspace({"/d": resource})
        try:
            drive.fault("GET", "/files$", refused(400, f"bad {SECRET} {REFRESH} ya29.hunter2-1", "invalid"))
            result = await ws.execute(f"ls {MY}; echo x > {MY}/x.txt; query /d hello")
            ws.snapshot(tmp_path / "snapshot.tar")
            shown = repr(resource) + repr(resource.describe()) + str(list(ws.history)) + repr(ws.mounts())
            return shown + result.stderr.decode() + result.stdout.decode()
        finally:
            await ws.close()

    seen = asyncio.run(act()) + (tmp_path / "snapshot.tar").read_bytes().decode("latin-1")
    assert "hunter2" not in seen and "REDACTED" in seen and CLIENT in seen
