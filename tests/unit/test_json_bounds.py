"""What is built of JSON from outside is bounded before it is built: by count, and by memory and time, measured in another process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from menuwatch.core import json_bounds
from menuwatch.core.errors import BadPayload
from menuwatch.core.json_bounds import TooManyValues, check_elements, check_values
from menuwatch.platforms.base import split_pages
from menuwatch.platforms.dutchie import answers as dutchie
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.platforms.envelope import MAX_ITEMS, MAX_LIST_BYTES, decode
from menuwatch.platforms.items import MAX_ITEM_BYTES
from menuwatch.platforms.model import PageInfo
from menuwatch.platforms.paging import whole_menu
from menuwatch.platforms.weedmaps import adapter as weedmaps
from menuwatch.platforms.weedmaps.adapter import Weedmaps

_values = st.recursive(
    st.none() | st.integers() | st.text('ab\\",:[]{} ', max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text('ab\\",:[]{} ', max_size=5), inner, max_size=5),
    max_leaves=30,
)


def counted(value: Any) -> tuple[int, int]:
    """(elements of arrays, members of objects) in a value."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    below = [counted(one) for one in inner]
    elements, members = sum(one for one, _ in below), sum(other for _, other in below)
    return elements + len(inner) * isinstance(value, list), members + len(inner) * isinstance(value, dict)


@given(_values, st.sampled_from([(",", ":"), (" , ", " : ")]))
@example([{":": None}] * 9, (",", ":"))
@example([{":": ":"}] * 9, (", ", ": "))
@example([{'\\":': '":'}] * 9, (",", ":"))
@example([[{":": ":" * 9}]] * 9, (",", ":"))
def test_the_quick_count_is_never_too_low_and_the_exact_one_is_close(value: Any, separators: tuple[str, str]) -> None:
    text = json.dumps(value, separators=separators).encode()
    elements, members = counted(value)
    assert json_bounds._most_elements(text) >= elements
    if elements:
        assert json_bounds._exceeds(text, elements - 1, members=False)
        assert json_bounds._exceeds(text, elements + members - 1, members=True)
    containers = text.count(b"[") + text.count(b"{")
    assert not json_bounds._exceeds(text, elements + members + containers, members=True)


def test_a_large_text_that_says_much_is_no_bomb() -> None:
    said = "Flower, indoor, 28 % [tested] {batch: 7, 8}, " * 12
    text = json.dumps({"products": [{"id": n, "said": said} for n in range(2500)]}).encode()
    assert len(text) > json_bounds.SMALL_BYTES
    assert json_bounds._most_elements(text) > len(text) / json_bounds.BYTES_PER_ELEMENT, (
        "the quick count alone would refuse it"
    )
    check_elements(text)


def test_values_of_any_kind_count_where_few_are_due() -> None:
    check_values(b'[{"a":1,"b":"' + b"[,:]" * 1000 + b'"}]', 4)
    for text in (b"[1,2,3,4,5]", b'{"a":1,"b":2,"c":3,"d":4,"e":5}', b"[[],[],[],[]]"):
        with pytest.raises(TooManyValues):
            check_values(text, 4)
    for text in (b"[" * 100_000, b'{"a', b"[],[]"):
        with pytest.raises((msgspec.DecodeError, RecursionError)):
            check_values(text, 4)


def menu(items: bytes) -> bytes:
    return b'{"data":{"filteredProducts":{"products":[%b]}}}' % items


@pytest.mark.parametrize(
    "read",
    [
        lambda count: dutchie.inspect(menu(b",".join([b'{"id":"a"}'] * count))),
        lambda count: Dutchie().split(menu(b",".join([b'{"id":"a", "name": "a text that is long enough"}'] * count))),
        lambda count: weedmaps.inspect(b'{"meta":{},"data":[%b]}' % b",".join([b'{"id":1}'] * count)),
        lambda count: split_pages(lambda _: [msgspec.Raw(b"{}")] * (count // 2), [b""] * 2),
    ],
)
def test_a_menu_has_no_more_items_than_that(read: Callable[[int], Any]) -> None:
    with pytest.raises(BadPayload) as refused:
        read(MAX_ITEMS + 2)
    assert (refused.value.kind, refused.value.final) == ("limits", True)


async def test_a_menu_whose_pages_never_end_is_refused() -> None:
    async def page(number: int) -> tuple[bytes, PageInfo]:
        return b"{}", PageInfo(tuple(f"{number}-{n}" for n in range(MAX_ITEMS // 4)), None, 500, strict=True)

    async def pause() -> None:
        raise AssertionError("no page was empty")

    with pytest.raises(BadPayload) as refused:
        await whole_menu(page, per_page=100, store="x", pause=pause)
    assert refused.value.kind == "limits"


@pytest.mark.parametrize("read_stores", [dutchie.read_stores, weedmaps.read_stores])
def test_a_list_of_stores_has_no_more_bytes_than_that(read_stores: Callable[[bytes], Any]) -> None:
    with pytest.raises(BadPayload) as refused:
        read_stores(b" " * (MAX_LIST_BYTES + 1))
    assert refused.value.kind == "limits"


@pytest.mark.parametrize("platform", [Dutchie(), Weedmaps()])
def test_an_item_that_is_too_large_is_no_product_and_keeps_its_name(platform: Any) -> None:
    raw = msgspec.Raw(
        b'{"id":"a","Name":"b","effects":{%b}}' % b",".join(b'"%07x":1' % n for n in range(MAX_ITEM_BYTES // 10))
    )
    found = platform.normalize([raw])
    assert (found.products, [one.fatal for one in found.warnings]) == ((), [True])
    assert platform.identity(raw) == "a", "it is still known which product it is"
    assert platform.store_of([raw]) is None


_CHILD = """
import sys, time
from menuwatch.archive import document
from menuwatch.core.errors import BadPayload
from menuwatch.platforms.dutchie import answers
from menuwatch.platforms.dutchie.adapter import Dutchie

def memory(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))

def menu(items):
    return b'{"data":{"filteredProducts":{"products":[' + items + b'],"queryInfo":{}}}}'

N, platform = int(sys.argv[1]), Dutchie()
members = b",".join(b'"%07x":1' % n for n in range(N // 12))
bodies = {
    "objects": menu(b"{}," * (N // 3) + b"{}"),
    "numbers": menu(b"0," * (N // 2) + b"0"),
    "thin": menu((b"{}" + b" " * 38 + b",") * (N // 41) + b"{}"),
    "children": menu(b'{"id":"a","Name":"b","POSMetaData":{"children":[' + b"{}," * (N // 3) + b"{}]}}"),
    "members": menu(b'{"id":"a","Name":"b","effects":{' + members + b"}}"),
    "errors": b'{"errors":[' + b'"ab",' * (N // 5) + b'"ab"]}',
    "totals": menu(b"{}")[:-4] + b'"totalCount":{' + members + b"}}}}}",
    "escapes": menu(b'{"id":"a","Name":"' + b"\\\\na" * (N // 3) + b'\\\\ud800"}'),
    "deep": menu(b"[" * 100_000 + b"]" * 100_000),
    "page": b"<html>" + b"x" * N,
    "bare": b"{}," * (N // 3),
}
for name, body in bodies.items():
    open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from here
    before, started, kind = memory("VmRSS"), time.process_time(), "ok"
    try:
        answers.inspect(body)
        items = platform.split(body)
        platform.store_of(items)
        platform.normalize(items)
        [platform.identity(item) for item in items]
    except BadPayload as error:
        kind = error.kind
    document.bodies((body,))
    print(name, kind, (memory("VmHWM") - before) / N, time.process_time() - started)
"""


def test_the_memory_and_time_of_an_answer() -> None:
    size = 8_000_000
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(size)], capture_output=True, text=True, check=True, timeout=120
    )
    found = {
        name: (kind, float(memory), float(cpu)) for name, kind, memory, cpu in map(str.split, child.stdout.splitlines())
    }
    assert {name: kind for name, (kind, _, _) in found.items()} == {
        "objects": "limits",
        "numbers": "limits",
        "thin": "limits",
        "children": "limits",
        "members": "ok",
        "errors": "limits",
        "totals": "ok",
        "escapes": "ok",
        "deep": "schema",
        "page": "html",
        "bare": "schema",
    }
    # Beside the body itself, which was there before.
    assert {name: memory for name, (_, memory, _) in found.items() if memory > 3} == {}
    assert {name: cpu for name, (_, _, cpu) in found.items() if cpu > 2} == {}


def test_a_text_of_broken_escapes_is_refused_early() -> None:
    body = b'["' + rb"\ud800" * 10_000_000 + b'"]'
    before = time.process_time()
    with pytest.raises(BadPayload) as refused:
        decode(body, msgspec.json.Decoder())
    assert refused.value.kind == "limits"
    assert time.process_time() - before < 2.0
