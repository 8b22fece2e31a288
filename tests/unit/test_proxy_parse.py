"""Proxy lines as providers hand them out."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.errors import Refused
from menuwatch.proxies.model import NewProxy
from menuwatch.proxies.parse import parse_line

READ = [
    ("203.0.113.7:8080", ("http", "203.0.113.7", 8080, None, None)),
    ("proxy.example.com:3128", ("http", "proxy.example.com", 3128, None, None)),
    ("Proxy.Example.COM.:3128", ("http", "proxy.example.com", 3128, None, None)),
    ("http://203.0.113.7:8080", ("http", "203.0.113.7", 8080, None, None)),
    ("http://203.0.113.7:8080/", ("http", "203.0.113.7", 8080, None, None)),
    ("https://u:p@gate.example:443", ("https", "gate.example", 443, "u", "p")),
    ("socks5://u:p@gate.example:1080", ("socks5", "gate.example", 1080, "u", "p")),
    ("SOCKS5H://u:p@gate.example:1080", ("socks5", "gate.example", 1080, "u", "p")),
    ("  203.0.113.7:8080:user:pass  ", ("http", "203.0.113.7", 8080, "user", "pass")),
    ("203.0.113.7:8080:user:pa:ss:", ("http", "203.0.113.7", 8080, "user", "pa:ss:")),
    ("203.0.113.7:8080:user:p@ss", ("http", "203.0.113.7", 8080, "user", "p@ss")),
    ("http://user:p@ss@203.0.113.7:8080", ("http", "203.0.113.7", 8080, "user", "p@ss")),
    ("http://user:p%40s%3As%2F@203.0.113.7:8080", ("http", "203.0.113.7", 8080, "user", "p@s:s/")),
    ("user:pass@203.0.113.7:8080", ("http", "203.0.113.7", 8080, "user", "pass")),
    ("[2001:db8::1]:8080", ("http", "2001:db8::1", 8080, None, None)),
    ("[2001:db8::1]:8080:user:pass", ("http", "2001:db8::1", 8080, "user", "pass")),
    ("socks5://user:pass@[2001:db8::1]:1080", ("socks5", "2001:db8::1", 1080, "user", "pass")),
    ("user:pass:gate.example:8080", ("http", "gate.example", 8080, "user", "pass")),
    ("user:pa:ss:203.0.113.7:8080", ("http", "203.0.113.7", 8080, "user", "pa:ss")),
    ("user:pass:localhost:8080", ("http", "localhost", 8080, "user", "pass")),
    ("user:pass:[2001:db8::1]:8080", ("http", "2001:db8::1", 8080, "user", "pass")),
    # What begins with an address or a whole name and a port begins with the place, whatever follows.
    ("203.0.113.7:8080:user:gate.example:80", ("http", "203.0.113.7", 8080, "user", "gate.example:80")),
    ("gate:8080:user:12345", ("http", "gate", 8080, "user", "12345")),
    ("user-zone-us_session-1:x@gate.example:7000", ("http", "gate.example", 7000, "user-zone-us_session-1", "x")),
]


@pytest.mark.parametrize(("line", "expected"), READ, ids=[line.strip() for line, _ in READ])
def test_every_usual_form_is_read(line: str, expected: tuple[str, str, int, str | None, str | None]) -> None:
    protocol, host, port, username, password = expected
    assert parse_line(line) == NewProxy(
        protocol=protocol,  # type: ignore[arg-type]
        host=host,
        port=port,
        username=username,
        password=password,
    )


WRONG = [
    ("", "empty"),
    ("203.0.113.7", "no port"),
    ("203.0.113.7:", "port"),
    ("203.0.113.7:0", "1 to 65535"),
    ("203.0.113.7:65536", "1 to 65535"),
    ("203.0.113.7:http", "1 to 65535"),
    ("203.0.113.7:٣٣", "1 to 65535"),
    ("203.0.113.999:80", "invalid IPv4 address"),
    ("203.0.113.7:80:S3cret", "too many colons"),
    ("gate:8080:S3cret.example:3128", "as HOST:PORT:USER:PASSWORD and as USER:PASSWORD:HOST:PORT"),
    ("http://user:S3cret%00x@203.0.113.7:80", "must not contain control characters"),
    ("http://us%0Aer:S3cret@203.0.113.7:80", "must not contain control characters"),
    ("user:S3cret:gate:http", "1 to 65535"),
    ("user:S3cret@gate.example:80" + "0" * 2000, "at most 2000 characters"),
    (":80", "no host"),
    ("ho st:80", "spaces"),
    ("-bad-.example:80", "not a host name"),
    ("ftp://user:S3cret@203.0.113.7:80", "http, https, socks5"),
    ("socks4://203.0.113.7:80", "http, https, socks5"),
    ("http://user@203.0.113.7:80", "no password"),
    ("http://user:@203.0.113.7:80", "password of the proxy is empty"),
    ("http://:S3cret@203.0.113.7:80", "user of the proxy is empty"),
    ("http://user:S3cret@203.0.113.7", "no port"),
    ("http://user:S3cret@203.0.113.7:80/path", "unexpected text after the port"),
    ("http://us%3Aer:S3cret@203.0.113.7:80", "must not contain a colon"),
    ("[2001:db8::zz]:80", "invalid IPv6 address"),
    ("2001:db8::1", "invalid IPv4 address|not a host name|too many colons|1 to 65535"),
    ("socks5://user:" + "S3cret" * 50 + "@203.0.113.7:80", "255 bytes"),
]


@pytest.mark.parametrize(("line", "why"), WRONG, ids=[line[:40] or "empty" for line, _ in WRONG])
def test_a_wrong_line_is_told_what_is_wrong_without_the_password(line: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as caught:
        parse_line(line)
    assert "S3cret" not in str(caught.value)


_user = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=20)
_secret = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)
_host = st.from_regex(r"[a-z][a-z0-9]{0,10}(\.[a-z]{2,5})?", fullmatch=True)
_port = st.integers(1, 65535)


@given(_user, _secret, _host, _port)
def test_what_is_written_as_a_url_is_read_back(user: str, secret: str, host: str, port: int) -> None:
    read = parse_line(f"http://{quote(user, safe='')}:{quote(secret, safe='')}@{host}:{port}")
    assert (read.username, read.password, read.host, read.port) == (user, secret, host, port)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        read = parse_line(text)
    except Refused as error:
        assert str(error)  # noqa: PT017 - either outcome is right, and both are looked at
    else:
        assert 1 <= read.port <= 65535
        assert read.host


@given(_user, _secret, _host, _port)
def test_a_password_is_in_no_representation(user: str, secret: str, host: str, port: int) -> None:
    marked = "S3cret" + secret
    read = NewProxy(protocol="http", host=host, port=port, username=user, password=marked)
    assert marked not in repr(read)
    assert marked not in str(read)
    assert marked not in read.address
