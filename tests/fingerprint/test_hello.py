"""The parser of ClientHellos, held against examples that others published and against bytes made by hand."""

from __future__ import annotations

import hashlib

import pytest

from tests.fingerprint.hello import Incomplete, parse, parse_stream

# RFC 8448 section 3: the ClientHello of a simple 1-RTT handshake, byte for byte.
RFC_8448 = bytes.fromhex(
    "010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7000006130113031302"
    "010000910000000b0009000006736572766572ff01000100000a00140012001d0017001800190100010101020103010400230000"
    "00330026002400 1d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c"
    "002b0003020304000d0020001e040305030603020308040805080604010501060102010402050206020202"
    "002d00020101001c00024001".replace(" ", "")
)


def u16(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "big") for number in numbers)


def counted(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def made(
    ciphers: list[int],
    extensions: list[tuple[int, bytes]] | None,
    *,
    version: int = 0x0303,
    session: bytes = b"\x07" * 32,
) -> bytes:
    """A ClientHello of these parts; without extensions it ends after the compression methods, as in TLS 1.0."""
    body = u16(version) + b"\x01" * 32 + counted(session, 1) + counted(u16(*ciphers)) + b"\x01\x00"
    if extensions is not None:
        body += counted(b"".join(u16(number) + counted(data) for number, data in extensions))
    return b"\x01" + counted(body, 3)


def name(host: str) -> bytes:
    return counted(b"\x00" + counted(host.encode()))


def alpn(*protocols: bytes) -> bytes:
    return counted(b"".join(counted(protocol, 1) for protocol in protocols))


def records(message: bytes, *, size: int) -> bytes:
    """The message cut into TLS records of that size."""
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + counted(piece) for piece in pieces)


# The ciphers that Chrome has sent since 2021, and its signature algorithms.
CHROME = [4865, 4866, 4867, 49195, 49199, 49196, 49200, 52393, 52392, 49171, 49172, 156, 157, 47, 53]
SIGNATURES = counted(u16(0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601))


def chrome(order: list[int], groups: list[int]) -> bytes:
    """Chrome's hello with its extensions in this order, and GREASE wherever it puts any."""
    bodies = {
        0: name("browserleaks.com"),
        10: counted(u16(0x3A3A, *groups)),
        11: b"\x01\x00",
        13: SIGNATURES,
        16: alpn(b"h2", b"http/1.1"),
        43: counted(u16(0x5A5A, 0x0304, 0x0303), 1),
    }
    extensions = [(number, bodies.get(number, b"\x00\x00")) for number in order]
    return made([0x7A7A, *CHROME], [(0xDADA, b""), *extensions, (0xFAFA, b"\x00")])


def test_the_example_of_the_ja4_specification() -> None:
    # FoxIO, technical_details/JA4.md: JA4 and JA4_r of one hello.
    order = [0x1B, 0x00, 0x33, 0x10, 0x4469, 0x17, 0x2D, 0x0D, 0x05, 0x23, 0x12, 0x2B, 0xFF01, 0x0B, 0x0A, 0x15]
    hello = parse(chrome(order, [29, 23, 24]))
    assert hello.ja4 == "t13d1516h2_8daaf6152771_e5627efa2ab1"
    assert hello.ja4_raw == (
        "t13d1516h2_002f,0035,009c,009d,1301,1302,1303,c013,c014,c02b,c02c,c02f,c030,cca8,cca9_"
        "0005,000a,000b,000d,0012,0015,0017,001b,0023,002b,002d,0033,4469,ff01_0403,0804,0401,0503,0805,0501,0806,0601"
    )
    assert hello.server_name == "browserleaks.com"
    assert hello.alpn == (b"h2", b"http/1.1")


def test_a_browser_as_a_public_service_saw_it() -> None:
    # Chrome 143 as BrowserLeaks reported it: extensions in this connection's order, all four fingerprints.
    order = [45, 51, 16, 65037, 23, 17613, 0, 11, 10, 43, 65281, 35, 18, 5, 13, 27]
    hello = parse(chrome(order, [4588, 29, 23, 24]))
    assert hello.ja3_text() == (
        "771,4865-4866-4867-49195-49199-49196-49200-52393-52392-49171-49172-156-157-47-53,"
        "45-51-16-65037-23-17613-0-11-10-43-65281-35-18-5-13-27,4588-29-23-24,0"
    )
    assert hello.ja3 == "98487aa16281980e7d1120d399efb6a4"
    assert hello.ja3n == "8e19337e7524d2573be54efb2b0784c9"
    assert hello.ja4 == "t13d1516h2_8daaf6152771_d8a2da3f94cd"


@pytest.mark.parametrize(
    ("ciphers", "extensions", "text", "ja3"),
    [
        (
            [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4],
            [(0, name("a")), (10, counted(u16(23, 24, 25))), (11, b"\x01\x00")],
            "769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0",
            "ada70206e40642a3e4461f35503241d5",
        ),
        (
            [4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99],
            None,
            "769,4-5-10-9-100-98-3-6-19-18-99,,,",
            "de350869b8c85de67a350c8d186f11e6",
        ),
    ],
)
def test_the_examples_of_the_ja3_description(
    ciphers: list[int], extensions: list[tuple[int, bytes]] | None, text: str, ja3: str
) -> None:
    # Salesforce, README of ja3.
    hello = parse(made(ciphers, extensions, version=0x0301, session=b""))
    assert (hello.ja3_text(), hello.ja3) == (text, ja3)


def test_the_hello_of_rfc_8448() -> None:
    hello = parse(RFC_8448)
    assert hello.server_name == "server"
    assert hello.ciphers == (0x1301, 0x1303, 0x1302)
    assert hello.extensions == (0, 0xFF01, 10, 35, 51, 43, 13, 45, 28)
    assert hello.groups == (29, 23, 24, 25, 256, 257, 258, 259, 260)
    assert (hello.versions, hello.version, hello.alpn, hello.point_formats) == ((0x0304,), 0x0303, (), ())
    assert hello.ja4_raw == (
        "t13d030900_1301,1302,1303_000a,000d,001c,0023,002b,002d,0033,ff01_"
        "0403,0503,0603,0203,0804,0805,0806,0401,0501,0601,0201,0402,0502,0602,0202"
    )
    start, ciphers, rest = hello.ja4_raw.split("_", 2)
    hashed = [hashlib.sha256(part.encode()).hexdigest()[:12] for part in (ciphers, rest)]
    assert hello.ja4 == "_".join([start, *hashed])


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        (b"h2", "h2"),
        (b"http/1.1", "h1"),
        (b"\xab\xcd", "ad"),
        (b"\x30\xab", "3b"),
        (b"\x30\x31\xab\xcd", "3d"),
        (b"", "00"),
    ],
)
def test_the_first_protocol_is_shown_by_its_ends(first: bytes, shown: str) -> None:
    # FoxIO's examples; where an end is no letter or digit, by the ends of its hex form.
    assert parse(made([47], [(16, alpn(first, b"h2"))])).ja4_a == f"t12i0101{shown}"


def test_grease_counts_nowhere_and_an_address_has_no_name() -> None:
    grease = [0x0A0A, 0x1A1A, 0xBABA, 0xFAFA]
    plain, greasy = (
        parse(
            made(
                [*more, 0x1301],
                [*((number, b"") for number in more), (10, counted(u16(*more, 29))), (13, counted(u16(*more, 0x0403))),
                 (43, counted(u16(*more, 0x0304), 1))],
            )
        )
        for more in ([], grease)
    )  # fmt: skip
    assert greasy.ja4 == plain.ja4
    assert greasy.ja3n == plain.ja3n
    assert plain.ja4_a == "t13i010300"
    assert parse(made([0x0A1A, 0x1301], [])).ja4_a == "t12i020000"  # both end in A and are not equal: no GREASE
    assert parse(made(list(range(1, 120)), [])).ja4_a == "t12i990000"


def test_what_is_empty_hashes_to_zeros() -> None:
    assert parse(made([], None)).ja4 == "t12i000000_000000000000_000000000000"


@pytest.mark.parametrize("size", [1, 5, 100, 16_384])
def test_a_hello_may_come_in_several_records(size: int) -> None:
    assert parse_stream(records(RFC_8448, size=size) + b"\x14\x03\x03\x00\x01\x01") == parse(RFC_8448)


def test_a_hello_that_is_cut_off_is_incomplete_wherever_that_is() -> None:
    whole = records(RFC_8448, size=70)
    for length in range(len(whole)):
        with pytest.raises(Incomplete):
            parse_stream(whole[:length])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "a record of type 71"),
        (records(b"\x02\x00\x00\x00", size=9), "a handshake message of type 2"),
    ],
)
def test_what_is_no_hello_is_said_to_be_none(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_stream(raw)
