"""Where addresses are, from files that the tests write by the published formats; and what is said of files that are none."""

from __future__ import annotations

import gzip
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import maxminddb
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.geo.database import LOOK_SECONDS, GeoDatabase, Location, opened
from menuwatch.ops import doctor
from tests.geo import bin_file, mmdb_file

PHOENIX = Location(country="US", region="Arizona", city="Phoenix", latitude=33.4484, longitude=-112.074)
LONDON = Location(country="GB", region="England", city="London", latitude=51.5, longitude=-0.125)
NETWORKS = {
    "81.2.69.0/24": mmdb_file.city("GB", "England", "London", (51.5, -0.125)),
    "93.184.216.0/24": mmdb_file.city("US", "Arizona", "Phoenix", (33.4484, -112.074)),
    "2a02:cf40::/29": mmdb_file.city("NO"),
    "10.0.0.0/8": mmdb_file.city("US", "Nowhere", "Nowhere"),
}
ENTRIES = [
    ("81.2.69.0/24", "GB", "England", "London", 51.5, -0.125),
    ("93.184.216.0/24", "US", "Arizona", "Phoenix", 33.4484, -112.074),
    ("2a02:cf40::/29", "NO", "-", "-", 0.0, 0.0),
    ("10.0.0.0/8", "US", "Nowhere", "Nowhere", 1.0, 1.0),
]


class Hand:
    """A clock that is moved by hand, in seconds."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def where(database: GeoDatabase, text: str) -> Location | None:
    return database.locate(ip_address(text))


@pytest.fixture(params=["mmdb 24", "mmdb 28", "mmdb 32", "bin"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> GeoDatabase:
    # By its content: the name says nothing.
    path = tmp_path / "places.dat"
    if request.param == "bin":
        bin_file.write(path, ENTRIES)
    else:
        mmdb_file.write(path, NETWORKS, record_size=int(request.param.split()[1]))
    return GeoDatabase(path)


def test_an_address_has_its_place_in_either_format(database: GeoDatabase) -> None:
    assert where(database, "81.2.69.0") == where(database, "81.2.69.255") == LONDON
    found = where(database, "93.184.216.34")
    assert found is not None
    assert (found.country, found.region, found.city) == ("US", "Arizona", "Phoenix")
    assert found.latitude == pytest.approx(33.4484, abs=1e-4)
    assert found.longitude == pytest.approx(-112.074, abs=1e-4)
    assert where(database, "2a02:cf41::1") == Location(country="NO")


@pytest.mark.parametrize("text", ["81.2.70.0", "81.2.68.255", "8.8.8.8", "2001:4860:4860::8888", "255.255.255.254"])
def test_an_address_that_is_not_in_it_has_none(database: GeoDatabase, text: str) -> None:
    assert where(database, text) is None


@pytest.mark.parametrize(
    "text", ["10.1.2.3", "127.0.0.1", "::1", "192.168.1.1", "fe80::1", "fd00::1", "169.254.1.1", "0.0.0.0", "::"]
)
def test_private_addresses_are_nowhere_whatever_a_database_says(database: GeoDatabase, text: str) -> None:
    assert where(database, text) is None


def test_a_database_of_ipv4_alone_knows_nothing_of_ipv6(tmp_path: Path) -> None:
    path = tmp_path / "v4.mmdb"
    mmdb_file.write(path, {"81.2.69.0/24": mmdb_file.city("GB")}, version=4)
    assert where(GeoDatabase(path), "81.2.69.1") == Location(country="GB")
    assert where(GeoDatabase(path), "2a02:cf40::1") is None


def test_what_the_tests_write_is_such_a_file_for_the_strictest_reader(tmp_path: Path) -> None:
    # The reader of the format's makers, in C, against the one that we use, in Python.
    path = tmp_path / "geo"
    for size in (24, 28, 32):
        mmdb_file.write(path, NETWORKS, record_size=size)
        with maxminddb.open_database(path, maxminddb.MODE_MMAP_EXT) as reader:
            assert reader.get("81.2.69.77") == NETWORKS["81.2.69.0/24"]
            assert reader.get("81.2.70.0") is None


def test_it_says_what_it_is(tmp_path: Path) -> None:
    mmdb_file.write(tmp_path / "a", NETWORKS, kind="GeoLite2-City")
    bin_file.write(tmp_path / "b", ENTRIES)
    assert GeoDatabase(tmp_path / "a").about == "MaxMind format, GeoLite2-City, of 2026-09-21"
    assert GeoDatabase(tmp_path / "b").about == "IP2Location DB5, of 2026-11-21"
    assert opened(None) is None


def test_the_doctor_looks_at_the_file(tmp_path: Path) -> None:
    def said(path: Path | None, day: date) -> list[tuple[str, str]]:
        found = doctor.machine(Settings(home=tmp_path, geoip_database=path), day)
        return [(one.level, one.detail) for one in found if one.check == "places"]

    mmdb_file.write(tmp_path / "a", NETWORKS)
    bin_file.write(tmp_path / "b", ENTRIES)
    (tmp_path / "c").write_bytes(b"PK\x03\x04")
    what = "MaxMind format, Test-City, of 2026-09-21"
    assert said(None, date(2026, 11, 22)) == []
    assert said(tmp_path / "a", date(2026, 11, 22)) == [("ok", what)]
    assert said(tmp_path / "a", date(2027, 9, 21)) == [("warning", f"{what}: 365 days old")]
    assert said(tmp_path / "b", date(2027, 11, 21)) == [("warning", "IP2Location DB5, of 2026-11-21: 365 days old")]
    for name in ("c", "none"):
        ((level, detail),) = said(tmp_path / name, date(2026, 11, 22))
        assert (level, "GEOIP_DATABASE=" in detail) == ("problem", True)


def _written(path: Path, content: Any) -> None:
    if content == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("DB5.BIN", b"x")
    elif content == "asn":
        mmdb_file.write(path, {"81.2.69.0/24": {"autonomous_system_number": 20712}}, kind="GeoLite2-ASN")
    elif content == "cut off":
        mmdb_file.write(path, NETWORKS)
        path.write_bytes(path.read_bytes()[:300])
    elif content == "cut off bin":
        bin_file.write(path, ENTRIES)
        path.write_bytes(path.read_bytes()[:300])
    elif content == "no texts":
        bin_file.write(path, ENTRIES)
        raw = path.read_bytes()
        path.write_bytes(raw[: raw.index(b"\x02- ")])
    elif content == "broken metadata":
        mmdb_file.write(path, NETWORKS)
        path.write_bytes(path.read_bytes()[:-40])
    elif content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("folder", "it is a folder: name the file in it"),
        (b"", "it is empty"),
        ("zip", "it is a ZIP archive: unpack it"),
        (gzip.compress(b"x", mtime=0), "it is packed (gzip): unpack it"),
        (b"<!doctype html><title>Sign in", "it is a web page"),
        (b'"0","16777215","-","-"\n', "it is a CSV table"),
        (b"\x63" + b"\xff" * 999, "it is neither, or truncated"),
        ("cut off", "it is neither, or truncated"),
        ("cut off bin", "it is neither, or truncated"),
        ("no texts", "it is a broken IP2Location database"),
        ("broken metadata", "it is a broken MaxMind database"),
        ("asn", "another kind (GeoLite2-ASN): it has no countries"),
    ],
)
def test_what_is_no_such_file_is_refused_with_what_would_be_right(tmp_path: Path, content: Any, says: str) -> None:
    path = tmp_path / "geo"
    _written(path, content)
    with pytest.raises(Refused) as refusal:
        opened(path)
    assert str(refusal.value).startswith(f"invalid GEOIP_DATABASE={str(path)!r}: ")
    assert says in str(refusal.value)
    assert "expected an uncompressed MaxMind (.mmdb) or IP2Location BIN file" in str(refusal.value)


def test_without_the_package_a_bin_file_is_refused_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_file.write(tmp_path / "geo", ENTRIES)
    monkeypatch.setitem(sys.modules, "IP2Location", None)  # as where it is not installed
    with pytest.raises(Refused, match=r"pip install 'menuwatch\[ip2location\]'"):
        opened(tmp_path / "geo")


def test_many_threads_may_ask_at_once(database: GeoDatabase) -> None:
    asked = ["81.2.69.1", "93.184.216.1", "2a02:cf40::1", "8.8.8.8"] * 250
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: where(database, text), asked))
    countries = [one and one.country for one in found]
    assert countries == ["GB", "US", "NO", None] * 250


def test_a_file_that_is_replaced_is_read_anew_also_by_the_other_format(tmp_path: Path) -> None:
    clock, path, fresh = Hand(), tmp_path / "geo", tmp_path / "fresh"
    mmdb_file.write(path, {"81.2.69.0/24": mmdb_file.city("GB")})
    database = GeoDatabase(path, clock=clock)
    bin_file.write(fresh, [("81.2.69.0/24", "NO", "Oslo", "Oslo", 59.9, 10.7)])
    fresh.replace(path)
    assert where(database, "81.2.69.1") == Location(country="GB")  # it is looked at now and then only
    clock.now += LOOK_SECONDS
    found = where(database, "81.2.69.1")
    assert found is not None
    assert (found.country, found.city) == ("NO", "Oslo")


def test_a_file_that_is_replaced_by_something_broken_leaves_what_was(tmp_path: Path) -> None:
    clock, path, fresh = Hand(), tmp_path / "geo", tmp_path / "fresh"
    mmdb_file.write(path, {"81.2.69.0/24": mmdb_file.city("GB")})
    database = GeoDatabase(path, clock=clock)
    for content in (b"<html>", b"", None):
        if content is None:
            path.unlink()
        else:
            fresh.write_bytes(content)
            fresh.replace(path)
        clock.now += LOOK_SECONDS
        assert where(database, "81.2.69.1") == Location(country="GB")
    mmdb_file.write(fresh, {"81.2.69.0/24": mmdb_file.city("FR")})
    fresh.replace(path)
    clock.now += LOOK_SECONDS
    assert where(database, "81.2.69.1") == Location(country="FR")


def test_a_file_that_is_written_over_in_place_breaks_nothing(tmp_path: Path) -> None:
    clock, path = Hand(), tmp_path / "geo"
    mmdb_file.write(path, NETWORKS)
    database = GeoDatabase(path, clock=clock)
    whole = path.read_bytes()
    path.write_bytes(whole[:200])  # half of it is there
    assert where(database, "81.2.69.1") is None
    clock.now += LOOK_SECONDS
    assert where(database, "81.2.69.1") is None
    path.write_bytes(whole)
    clock.now += LOOK_SECONDS
    assert where(database, "81.2.69.1") == LONDON


@pytest.mark.parametrize(
    "record",
    [
        {"country": "US"},
        {"country": {"iso_code": 7}},
        {"country": {"iso_code": "USA"}},
        {"subdivisions": {"a": "b"}, "country": []},
        ["US"],
    ],
)
def test_records_of_a_stranger_shape_are_no_place(tmp_path: Path, record: Any) -> None:
    path = tmp_path / "geo"
    mmdb_file.write(path, {"81.2.69.0/24": record, "93.184.216.0/24": mmdb_file.city("US")})
    assert where(GeoDatabase(path), "81.2.69.1") is None


def test_odd_values_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "geo"
    record = mmdb_file.city("us", "Ari\nzona", "x" * 900, (91.0, 10.0)) | {"subdivisions": []}
    mmdb_file.write(path, {"81.2.69.0/24": record})
    assert where(GeoDatabase(path), "81.2.69.1") == Location(country="US", city="x" * 100)
