"""Lists and tables of proxies, as providers and spreadsheets write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.errors import Refused
from menuwatch.proxies.import_file import read, text_of
from menuwatch.proxies.location import Location
from menuwatch.proxies.parse import parse_line


def _found(text: str) -> list[tuple[int, str, str | None]]:
    given_, _ = read(text)
    return [(one.number, one.proxy.address, one.proxy.password) for one in given_]


def _wrong(text: str) -> list[tuple[int, str]]:
    return [(line.number, line.reason) for line in read(text)[1]]


def test_a_list_keeps_the_good_lines_and_numbers_the_bad() -> None:
    text = "# mine\n\n203.0.113.7:80\nnonsense\r\n203.0.113.8:81:u:p\n\t# end\nsocks5h://u:p@gate.example:1080"
    assert _found(text) == [
        (3, "http://203.0.113.7:80", None),
        (5, "http://u@203.0.113.8:81", "p"),
        (7, "socks5://u@gate.example:1080", "p"),
    ]
    ((number, reason),) = _wrong(text)
    assert number == 4
    assert "no port" in reason


def test_a_table_has_its_columns_in_any_order_and_by_their_usual_names() -> None:
    text = "Pass,IP Address,last checked,Time-Zone,User,Region,Type,PORT\ns3cret,203.0.113.7,today,America/Phoenix,me,az,SOCKS5,1080\n"
    ((one,), rejected) = read(text)
    assert rejected == []
    proxy = one.proxy
    assert (one.number, proxy.address, proxy.password) == (2, "socks5://me@203.0.113.7:1080", "s3cret")
    assert (proxy.state, proxy.country, proxy.timezone) == ("AZ", None, "America/Phoenix")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_of_spreadsheets(delimiter: str) -> None:
    rows = [
        ["host", "port", "username", "password", "country"],
        ["gate.example", "8080", "me", '"a,b;c""d"', "us"],
        ["2001:db8::1", "8081", "", "", ""],
        ["[2001:db8::2]", "8082", "", "", ""],
        ["", "", "", "", ""],
        ["other.example", "8083"],
    ]
    text = "\r\n".join(delimiter.join(row) for row in rows)
    found, rejected = read(text_of(b"\xef\xbb\xbf" + text.encode()))
    assert [(one.number, one.proxy.address, one.proxy.password) for one in found] == [
        (2, "http://me@gate.example:8080", 'a,b;c"d'),
        (4, "http://[2001:db8::2]:8082", None),
        (6, "http://other.example:8083", None),
    ]
    ((number, reason),) = [(line.number, line.reason) for line in rejected]
    assert number == 3
    assert "brackets" in reason
    assert read(text_of(b"\xff\xfe" + text.encode("utf-16-le"))) == (found, rejected)


def test_a_column_may_hold_whole_proxies() -> None:
    text = "proxy;state\nsocks5://u:p@gate.example:1080;CA\n"
    ((one,), rejected) = read(text)
    assert (one.proxy.address, one.proxy.state, rejected) == ("socks5://u@gate.example:1080", "CA", [])


def test_what_is_wrong_with_a_line_is_said_without_its_password() -> None:
    rows = [
        ('gate.example,80,me,"S3cret', "not closed"),
        ("gate.example,80,me,S3c,ret,,,,x", "9 values for 7 columns: quote values that contain ','"),
        (",80,me,S3cret", "no host"),
        ("gate.example,,me,S3cret", "1 to 65535"),
        ("gate.example,80,,S3cret", "user of the proxy is empty"),
        ("gate.example,80,me,", "password of the proxy is empty"),
        ("gate.example,80,me,S3cret,ftp", "http, https, socks5"),
        ("gate.example,80,me,S3cret,http,Arizona", "two letters, e.g. AZ: got 'Arizona'"),
        ("gate.example,80,me,S3cret,http,ZZ", "ZZ is not a state"),
        ("gate.example,80,me,S3cret,http,AZ,Mars/Base", "unknown time zone 'Mars/Base': use an IANA name"),
    ]
    text = "\n".join(["host,port,user,pass,type,state,tz", *(row for row, _ in rows), "gate.example,80,me,S3cret"])
    wrong = _wrong(text)
    assert [number for number, _ in wrong] == list(range(2, 12))
    for (_, reason), (_, says) in zip(wrong, rows, strict=True):
        assert says in reason
        assert "S3c" not in reason
    assert _found(text) == [(12, "http://me@gate.example:80", "S3cret")]


def test_a_table_without_a_header_is_told_so() -> None:
    ((_, reason),) = _wrong("203.0.113.7,8080,me,S3cret")
    assert "needs a header line" in reason
    assert "S3cret" not in reason


def test_two_columns_of_one_meaning_are_refused() -> None:
    with pytest.raises(Refused, match="two columns for host: 'host' and 'ip'"):
        read("host,ip,port\na.example,203.0.113.7,80")


def test_a_line_without_end_spoils_itself_alone() -> None:
    long = '203.0.113.8,80,me,"' + "x" * 200_000
    assert _wrong(f"host,port,user,pass\n{long}\n203.0.113.7,80,,") == [(2, "the line has more than 10,000 characters")]


def test_bytes_that_are_no_text_spoil_their_line_alone() -> None:
    content = b"203.0.113.7:80\n203.0.113.8:81:u:p\xff\xfe\n203.0.113.9:82"
    assert [number for number, _, _ in _found(text_of(content))] == [1, 3]
    ((number, reason),) = _wrong(text_of(content))
    assert number == 2
    assert "UTF-8" in reason


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ({"state": "ZZ"}, "ZZ is not a state or province of the United States or Canada"),
        ({"state": "ON", "country": "US"}, "ON is not a state or province of the United States"),
        (
            {"state": "AZ", "country": "CA"},
            "AZ is not a state or province of Canada: use the postal code, for example ON",
        ),
        ({"country": "UK"}, "the United Kingdom is GB"),
        ({"country": "XX"}, "XX is not a country code"),
        ({"country": "USA"}, "two letters, e.g. US: got 'USA'"),
        ({"timezone": "Phoenix"}, "unknown time zone 'Phoenix'"),
        ({"timezone": "../../etc/passwd"}, "unknown time zone"),
        ({"timezone": "America/Phoenix\x00"}, "unknown time zone"),
    ],
)
def test_a_place_that_does_not_exist_is_refused(place: dict[str, str], says: str) -> None:
    with pytest.raises(Refused) as caught:
        Location.parse(**place).of(parse_line("203.0.113.7:80"))
    assert says in str(caught.value)


def test_a_place_is_brought_to_one_form() -> None:
    proxy = Location.parse(state="on", country="ca", city="Toronto", timezone="America/Toronto").of(
        parse_line("203.0.113.7:80")
    )
    assert (proxy.state, proxy.country, proxy.city, proxy.timezone) == ("ON", "CA", "Toronto", "America/Toronto")
    assert Location.parse(state="QC").of(proxy).country == "CA"


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        found, rejected = read(text)
    except Refused as error:
        assert "two columns" in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert all(1 <= one.proxy.port <= 65535 for one in found)
        assert all(line.reason for line in rejected)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(content: bytes) -> None:
    try:
        read(text_of(content))
    except Refused as error:
        assert "two columns" in str(error)  # noqa: PT017 - either outcome is right
