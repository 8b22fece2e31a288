"""The file of browser profiles: what is in it, what is refused, who is drawn."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from curl_cffi import Curl

from menuwatch.core.errors import Refused
from menuwatch.fetch import profile_file, profiles
from menuwatch.fetch.profiles import BUILT_IN, PROFILES, Profile, list_headers, list_profiles, load, plausible
from tests import commands

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 21)
BY_NAME = {profile.name: profile for profile in PROFILES}
TEXT = BUILT_IN.read_text(encoding="utf-8")

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def edited(profile: str, old: str, new: str) -> str:
    """The built-in file with one replacement, in the table of that profile or family."""
    mark = f'name = "{profile}"' if f'name = "{profile}"' in TEXT else f"[families.{profile}]"
    head, tail = TEXT[: TEXT.index(mark)], TEXT[TEXT.index(mark) :]
    assert old in tail
    return head + tail.replace(old, new, 1)


def test_the_twelve_are_those_that_the_specification_names_and_six_more() -> None:
    assert [(profile.name, profile.target) for profile in PROFILES] == [
        ("chrome-131-windows", "chrome131"),
        ("chrome-131-macos", "chrome131"),
        ("chrome-120-windows", "chrome120"),
        ("firefox-133-windows", "firefox133"),
        ("safari-17.2-macos", "safari170"),
        ("edge-131-windows", "chrome131"),
        ("chrome-131-linux", "chrome131"),
        ("chrome-136-macos", "chrome136"),
        ("edge-136-windows", "chrome136"),
        ("firefox-135-macos", "firefox135"),
        ("safari-18.0-macos", "safari180"),
        ("safari-18.4-macos", "safari184"),
    ]


def test_every_one_is_current_and_goes_on_until_the_middle_of_next_year() -> None:
    for profile in PROFILES:
        assert profile.is_current(TODAY)
        assert profile.is_current(date(2027, 6, 29))
    # As the makers announced them.
    assert BY_NAME["chrome-131-macos"].released == date(2024, 11, 12)
    assert BY_NAME["firefox-135-macos"].released == date(2025, 2, 4)
    assert BY_NAME["safari-18.0-macos"].released == date(2024, 9, 16)


def test_every_target_of_the_list_is_known_to_the_library_itself() -> None:
    known = profile_file.targets()
    assert {profile.target for profile in PROFILES} <= set(known)
    for target in known:
        assert Curl().impersonate(target) == 0
    assert not {"chrome", "safari", "firefox", "edge", "safari17_0"} & set(known)


def test_zstd_and_priority_came_when_they_came() -> None:
    has_zstd = {profile.name for profile in PROFILES if "zstd" in profile.accept_encoding}
    has_priority = {
        profile.name for profile in PROFILES for lines in profile.templates.values() if "Priority" in dict(lines)
    }
    safaris = {name for name in BY_NAME if name.startswith("safari")}
    assert has_zstd == set(BY_NAME) - safaris - {"chrome-120-windows"}
    assert has_priority == set(BY_NAME) - {"safari-17.2-macos", "chrome-120-windows"}


def test_a_file_of_ones_own_replaces_the_built_in_one(write: Write) -> None:
    path = write(edited("chrome-131-windows", "weight = 20", "weight = 77"))
    catalogue = load(path)
    assert catalogue.source == path
    assert [profile.weight for profile in catalogue.profiles][:2] == [77, 8]
    assert catalogue.profiles[1:] == PROFILES[1:]
    assert load() == load(None) == load(BUILT_IN)
    assert load().profiles is PROFILES


@pytest.mark.parametrize(
    ("where", "old", "new", "said"),
    [
        ("chrome-131-windows", 'target = "chrome131"', 'target = "chrome999"', ["target", "'chrome999'", "chrome136, chrome142"]),
        ("chrome-131-windows", 'target = "chrome131"', 'target = "chrome"', ["target", "unknown target 'chrome'", "chrome131"]),
        ("chrome-131-windows", 'target = "chrome131"', 'target = "chrome136"', ["target", "chromium 131", "use chrome131"]),
        ("edge-131-windows", 'target = "chrome131"', 'target = "edge101"', ["target", "'edge101'", "use chrome131"]),
        ("safari-17.2-macos", 'target = "safari170"', 'target = "safari172_ios"', ["target", "use safari170"]),
        ("safari-17.2-macos", 'target = "safari170"', 'target = "firefox133"', ["target", "safari 17"]),
        ("chrome-131-macos", 'name = "chrome-131-macos"', 'name = "chrome-131-windows"', ["name", "duplicate name"]),
        ("chrome-131-macos", 'name = "chrome-131-macos"', 'name = "Chrome 131"', ["name", "lower-case letters"]),
        ("chrome-131-macos", "weight = 8", "weight = 0", ["weight", "0", "above 0"]),
        ("chrome-131-macos", "weight = 8", "weight = -1", ["weight", "-1", "above 0"]),
        ("chrome-131-macos", "weight = 8", "weight = true", ["weight", "True", "an integer"]),
        ("chrome-131-macos", "weight = 8\n", "", ["weight", "missing"]),
        ("chrome-131-macos", "weight = 8", "weight = 8\nwieght = 9", ["wieght", "unknown field", "plausibility"]),
        ("chrome-131-macos", "released = 2024-11-12", "released = 2028-11-12", ["retires", "2027-09-30", "not after"]),
        ("chrome-131-macos", "released = 2024-11-12", 'released = "2024-11-12"', ["released", "without quotes"]),
        ("chrome-131-macos", "released = 2024-11-12", "released = 2024-11-12T00:00:00Z", ["released", "a date"]),
        ("chrome-131-macos", "Chrome/131.0.0.0", "Chrome/132.0.0.0", ["target", "chromium 132", "has no target"]),
        ("chrome-131-macos", "Chrome/131.0.0.0", "Chrome/131.0.6778.86", ["user_agent", "Chrome/131.0.0.0"]),
        ("chrome-131-macos", "Macintosh; Intel Mac OS X 10_15_7", "Windows NT 10.0; Win64; x64", ["user_agent", "'macOS'"]),
        ("chrome-131-macos", 'platform = "macOS"', 'platform = "Windows"', ["user_agent", "'Windows'", "Windows NT 10.0"]),
        ("chrome-131-macos", 'platform = "macOS"', 'platform = "BeOS"', ["platform", "'BeOS'", "Windows, macOS, Linux"]),
        ("chrome-131-macos", "mobile = false", "mobile = true", ["mobile", "only desktop"]),
        ("chrome-131-macos", '"Chromium";v="131"', '"Chromium";v="130"', ["brands", '"Chromium";v="131"']),
        ("chrome-131-macos", '"Google Chrome";v="131", ', "", ["brands", '"Google Chrome";v="131"']),
        ("edge-131-windows", '"Microsoft Edge";v="131"', '"Google Chrome";v="131"', ["brands", '"Microsoft Edge";v="131"']),
        ("edge-131-windows", "Edg/131.0.0.0", "Edg/130.0.0.0", ["user_agent", "Edg/130", "Chrome/131"]),
        ("chrome-131-macos", "brands = '\"Google", "brands = 'Google", ["brands", "not a list of brands"]),
        ("firefox-133-windows", 'platform = "Windows"', "platform = \"Windows\"\nbrands = 'x'", ["brands", "only Chromium"]),
        ("firefox-133-windows", "rv:133.0", "rv:134.0", ["user_agent", "rv:133.0) Gecko"]),
        ("firefox-133-windows", 'family = "firefox-128"', 'family = "firefox"', ["family", "'firefox'", "firefox-128"]),
        ("firefox-133-windows", 'family = "firefox-128"', 'family = "safari-18"', ["user_agent", "Version/18.0"]),
        ("chrome-120-windows", "deflate, br", "deflate, br, zstd", ["accept_encoding", "zstd since 123"]),
        ("chrome-131-windows", "deflate, br, zstd", "deflate, br", ["accept_encoding", "zstd since 123"]),
        ("safari-18.4-macos", "deflate, br", "deflate, br, zstd", ["accept_encoding", "no zstd"]),
        ("safari-18.4-macos", "deflate, br", "deflate,br", ["accept_encoding", "comma and a space"]),
        ("safari-18.4-macos", "{ US = 1.2, CA = 1.1 }", "{ us = 1.2 }", ["plausibility", "'us'", "two-letter country code"]),
        ("safari-18.4-macos", "{ US = 1.2, CA = 1.1 }", "{ US = 0 }", ["plausibility", "US is 0", "above 0"]),
        ("safari-18.4-macos", "{ US = 1.2, CA = 1.1 }", "1.2", ["plausibility", "a table"]),
        ("safari-18", "{accept-language}", "{language}", ["templates.document", "'{language}'", "{accept-language}"]),
        ("safari-18", '["Cookie", "{given}"]', '["Cookie", "a=1"]', ["templates.document", "cookie", "'a=1'", "{given}"]),
        ("safari-18", '  ["Accept-Encoding", "{accept-encoding}"],\n', "", ["templates.document", "accept-encoding", "missing"]),
        ("safari-18", '["Priority", "u=0, i"]', '["accept", "*/*"]', ["templates.document", "accept", "repeated"]),
        ("safari-18", '["Priority", "u=0, i"]', '["Priority"]', ["templates.document", "[header, value]"]),
        ("safari-18", '["Priority", "u=0, i"]', '["Pri ority", "u"]', ["templates.document", "'Pri ority'", "invalid header name"]),
        ("safari-18", '["Priority", "u=0, i"]', '["Priority", "u=0\\r\\nX: y"]', ["templates.document", "Priority", "characters"]),
        ("safari-18", '["Priority", "u=0, i"]', '["sec-ch-ua", "x"]', ["templates.document", "sec-ch-ua", "only Chromium"]),
        ("chromium-131", '  ["sec-ch-ua-mobile", "{sec-ch-ua-mobile}"],\n', "", ["templates.document", "sec-ch-ua-mobile", "missing"]),
        ("safari-18", 'engine = "safari"', 'engine = "webkit"', ["engine", "'webkit'", "chromium, firefox, safari"]),
        ("safari-18", 'language_steps = "tenths"', 'language_steps = "thirds"', ["language_steps", "tenths, even"]),
        ("safari-18", "http2_only = []", "http2_only = [1]", ["http2_only", "list of headers"]),
        ("firefox-128", "stream_weight = 42", "stream_weight = 257", ["stream_weight", "257", "1 to 256"]),
        ("safari-18", "\nimage = [", "\npicture = [", ["templates.image", "missing"]),
    ],
)  # fmt: skip
def test_what_no_browser_would_send_is_refused_by_name_and_field(
    write: Write, where: str, old: str, new: str, said: list[str]
) -> None:
    path = write(edited(where, old, new))
    with pytest.raises(Refused) as refused:
        load(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    named = new.partition('"')[2].rstrip('"') if old.startswith("name") else where
    for part in (named, *said):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "families: it is missing"),
        ("families = {}", "profiles: it is missing"),
        ("families = {}\nprofiles = []", "at least one is required"),
        ("families = {}\nprofiles = [1]", "profile number 1"),
        ("families = {}\n[[profiles]]\nweight = 1", "profile number 1, name: it is missing"),
        ("families = 3\nprofiles = []", "families"),
        ("families = {}\nprofiles = []\nextra = 1", "extra"),
        ("[[", "not a UTF-8 TOML file"),
    ],
)
def test_a_file_of_another_form_is_refused(write: Write, text: str, said: str) -> None:
    with pytest.raises(Refused, match=r"mine\.toml") as refused:
        load(write(text))
    assert said in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"none\.toml: the browser profiles cannot be read: No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(Refused, match="cannot be read"):
        load(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(Refused, match="not a UTF-8 TOML file"):
        load(binary)


def test_a_place_makes_a_browser_likelier_but_never_certain() -> None:
    mac, windows = BY_NAME["safari-18.4-macos"], BY_NAME["chrome-131-windows"]
    assert (mac.weight, mac.weight_in("US"), mac.weight_in("us"), mac.weight_in("DE"), mac.weight_in(None)) == (
        10, 12.0, 12.0, 10.0, 10.0,
    )  # fmt: skip
    assert windows.weight_in("US") == windows.weight_in("JP") == 20.0
    shares = {place: dict_share(place) for place in ("US", "CA", "JP")}
    assert shares["US"] > shares["CA"] > shares["JP"]
    assert shares["US"] - shares["JP"] < 0.1  # modest


def dict_share(country: str) -> float:
    drawn = plausible(PROFILES, country, TODAY)
    return sum(weight for profile, weight in drawn if profile.platform == "macOS") / sum(weight for _, weight in drawn)


def aged(profile: Profile, released: int, retires: int) -> Profile:
    """The profile with its dates that many days from TODAY."""
    return dataclasses.replace(
        profile, released=TODAY + timedelta(days=released), retires=TODAY + timedelta(days=retires)
    )


def test_who_has_retired_comes_back_only_when_nobody_else_is_left() -> None:
    first, second, third = PROFILES[:3]
    current, retired, coming = aged(first, -9, 1), aged(second, -9, 0), aged(third, 1, 9)
    assert [one.status(TODAY) for one in (current, retired, coming)] == ["current", "retired", "not yet released"]
    assert [one.is_current(TODAY) for one in (current, retired, coming)] == [True, False, False]
    assert aged(first, 0, 1).is_current(TODAY)
    assert plausible([retired, current, coming], "US", TODAY) == [(current, 20.0)]
    assert plausible([retired, coming], "US", TODAY) == [(retired, 9.6)]
    assert plausible([coming], None, TODAY) == [(coming, 4.0)]
    assert plausible([], None, TODAY) == []
    assert len(plausible(PROFILES, None, TODAY)) == 12


def test_the_list_for_people_has_shares_of_those_who_are_drawn() -> None:
    rows = list_profiles(PROFILES, country=None, today=TODAY)
    assert [row.share for row in rows] == [20.0, 8.0, 4.0, 5.0, 5.0, 9.0, 3.0, 13.0, 12.0, 4.0, 7.0, 10.0]
    assert {row.status for row in rows} == {"current"}
    later = {row.name: row for row in list_profiles(PROFILES, country="us", today=date(2028, 1, 31))}
    assert {name for name, row in later.items() if row.share} == {
        "chrome-136-macos",
        "edge-136-windows",
        "safari-18.4-macos",
    }
    assert later["firefox-135-macos"].status == "retired"
    with pytest.raises(Refused, match="'USA'"):
        list_profiles(PROFILES, country="USA", today=TODAY)


def test_what_a_browser_sends_is_shown_in_its_order() -> None:
    lines = list_headers(PROFILES, "firefox-135-macos")
    assert [line.header for line in lines if line.request == "image"][:3] == ["User-Agent", "Accept", "Accept-Language"]
    assert [line.request for line in lines] == sorted(
        (line.request for line in lines), key=["document", "fetch", "image"].index
    )
    with pytest.raises(Refused, match="'lynx'; there are chrome-131-windows, "):
        list_headers(PROFILES, "lynx")


def menuwatch(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return commands.menuwatch("profiles", *arguments, env=os.environ | environ, timeout=60)


def test_the_command_lists_and_shows_them(write: Write) -> None:
    rows = json.loads(menuwatch("--format", "json").stdout)
    assert [row["name"] for row in rows] == list(BY_NAME)
    first = {key: rows[0][key] for key in ("target", "platform", "weight", "share", "released", "retires", "status")}
    assert first == {
        "target": "chrome131", "platform": "Windows", "weight": 20, "share": 20.0,
        "released": "2024-11-12", "retires": "2027-09-30", "status": "current",
    }  # fmt: skip
    shown = menuwatch("--show", "safari-18.0-macos").stdout
    assert shown.startswith("Page:\n  Sec-Fetch-Dest: document\n  User-Agent: Mozilla/5.0 (Macintosh")
    refused = menuwatch(PROFILES_FILE=str(write(edited("chrome-131-macos", "weight = 8", "weight = 0"))))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "profile chrome-131-macos, weight: must be an integer above 0, not 0" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_wheel_has_the_file(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        assert wheel.read("menuwatch/fetch/browsers.toml") == BUILT_IN.read_bytes()
    assert profiles.BUILT_IN.is_file()
