"""The language of searches for tasks: what it reads, what it writes, and how it says what it cannot read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from menuwatch.queue.model import Role, Status
from menuwatch.queue.search import parse
from menuwatch.queue.search_suggestions import suggest
from menuwatch.queue.search_terms import Fault
from menuwatch.queue.search_values import TaskSearch

NOV_1 = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def read(text: str) -> TaskSearch:
    found = parse(text)
    assert isinstance(found, TaskSearch), [str(fault) for fault in found]
    return found


def faults(text: str) -> list[Fault]:
    found = parse(text)
    assert isinstance(found, list), found
    return found


def test_the_whole_language() -> None:
    assert read(
        'role:payload_fetch store:green-leaf state:failed worker:Xylos-2 priority:>=10 created:>2026-11-01 error:"a b" '
        "platform:dutchie id:123 args.payload_id:5 cause:3f2a91c04d7e timeout"
    ) == TaskSearch(
        roles=(Role.PAYLOAD_FETCH,),
        store="green-leaf",
        states=(Status.FAILED,),
        worker="Xylos-2",
        priority_min=10,
        created_after=NOV_1 + DAY,
        texts=("a b", "timeout"),
        platform="dutchie",
        ids=(123,),
        arguments=(("payload_id", "5"),),
        cause="3f2a91c04d7e",
    )


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("", ""),
        ("  \t", ""),
        ("role:product_resync", "role:payload_fetch"),
        ("STATUS:Failed", "state:failed"),
        ("state:failed state:cancelled,failed", "state:cancelled,failed"),
        ("id:3,1 id:2", "id:1,2,3"),
        ("priority:>9 priority:<21", "priority:>=10 priority:<=20"),
        ("priority:0..0", "priority:0"),
        ("priority:-5", "priority:-5"),
        ("created:2026-11-01", "created:>=2026-11-01 created:<2026-11-02"),
        ("created:<=2026-11-01", "created:<2026-11-02"),
        ("created:2026-11-01..2026-11-03", "created:>=2026-11-01 created:<2026-11-04"),
        ("created:>=2026-11-01T02:00:00+02:00", "created:>=2026-11-01"),
        ("created:>2026-11-01T10:00:00Z", "created:>=2026-11-01T10:00:00.000001Z"),
        ("created:>-48h created:<-90m", "created:>=-2d created:<-90m"),
        ("completed:>=-24h ended:<-1h", "ended:>=-1d ended:<-1h"),
        ("args.b:1 args.a.c:x", "args.a.c:x args.b:1"),
        ('error:one "two three" one', 'one "two three"'),
        (r'"say \"no\" \\ more"', r'"say \"no\" \\ more"'),
        ('"role:x"', '"role:x"'),
        ("-role:product_resync -ROLE:store_discovery", "-role:payload_fetch,store_discovery"),
        ("-status:failed", "-state:failed"),
        ("attempts:>2 attempts:<=5", "attempts:>=3 attempts:<=5"),
        ("attempts:1", "attempts:1"),
        ("took:>30s", "took:>30s"),
        ("took:0.5s..2m", "took:>500ms took:<120s"),
        ("took:>=1h", "took:>3600s"),
        ("HOST:Dutchie.com", "host:dutchie.com"),
        ("don't 100% (of) /a/b?c=d", "don't 100% (of) /a/b?c=d"),
    ],
)
def test_one_meaning_is_written_in_one_way(text: str, same: str) -> None:
    assert read(text).text == same
    assert read(same) == read(text)


@pytest.mark.parametrize(
    ("text", "place", "wrong", "right"),
    [
        ("role:fetch", (0, 10), "unknown role 'fetch'", "payload_fetch"),
        ("x state:done", (2, 12), "unknown state 'done'", "completed"),
        ("state:", (0, 6), "has no value", "state:…"),
        ("state:failed,,running", (0, 21), "empty", "state:one,other"),
        ("http://host", (0, 11), "unknown qualifier http:", "quotes"),
        ("-store:x", (0, 8), "cannot be negated", "-role:"),
        ("took:30s", (0, 8), "direction", "took:>30s"),
        ("took:>30", (0, 8), "not a duration", "took:>30s"),
        ("took:>5m took:<1m", (9, 17), "not more than the shortest", "took:1m..5m"),
        ("attempts:>x", (0, 11), "not a whole number", "attempts:>=10"),
        ("id:abc", (0, 6), "not a whole number", "id:123,124"),
        ("id:0", (0, 4), "out of range", "from 1"),
        ("priority:>=2000", (0, 15), "out of range", "-1000 to 1000"),
        ("priority:>1000", (0, 14), "is out of range", "1000"),
        ("priority:9..1", (0, 13), "9 is more than 1", "priority:1..9"),
        ("priority:>=9 priority:<3", (13, 24), "empty priority range", "priority:0..10"),
        ("created:yesterday", (0, 17), "not a time", "2026-11-01"),
        ("created:>2026-11-01T10:00", (0, 25), "no UTC offset", "Z"),
        ("created:-24h", (0, 12), "direction", "created:>=-24h"),
        ("created:>=2026-11-05 created:<2026-11-01", (21, 40), "ends before it begins", "created:"),
        ("created:>=1900-01-01", (0, 20), "out of range", "2000"),
        ("store:a store:b", (8, 15), "twice", "one"),
        ("args.:5", (0, 7), "not an argument name", "args.payload_id:5"),
        ("args:5", (0, 6), "not an argument name", "args.payload_id:5"),
        ('error:"open', (6, 11), "not closed", "close it"),
        ('error:"a"b', (9, 10), "follows the closing quote", "space"),
        ("cause:xyz", (0, 9), "hexadecimal", "Failures"),
        ("a\0b", (0, 3), "NUL character", "leave it out"),
        ("a" * 201, (0, 201), "201 characters", "at most 200"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(text: str, place: tuple[int, int], wrong: str, right: str) -> None:
    (fault,) = faults(text)
    assert (fault.start, fault.end) == place
    assert wrong in fault.wrong
    assert right in fault.right
    assert str(fault).startswith(f"at {place[0] + 1}: ")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert [fault.start for fault in faults("role:x ok state:y id:z")] == [0, 10, 18]


_text = st.text(min_size=1, max_size=30).filter(
    lambda t: "\0" not in t and not any("\ud800" <= c <= "\udfff" for c in t)
)
_moment = st.one_of(
    st.datetimes(datetime(2001, 1, 1), datetime(2098, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.integers(0, 100_000).map(lambda n: timedelta(minutes=n)),
)
_searches = st.builds(
    TaskSearch,
    roles=st.sets(st.sampled_from(Role)).map(lambda s: tuple(sorted(s))),
    states=st.sets(st.sampled_from(Status)).map(lambda s: tuple(sorted(s))),
    store=st.none() | _text,
    worker=st.none() | _text,
    platform=st.none() | _text,
    ids=st.sets(st.integers(1, 2**63 - 1), max_size=5).map(lambda s: tuple(sorted(s))),
    priority_min=st.none() | st.integers(-1000, 0),
    priority_max=st.none() | st.integers(0, 1000),
    created_after=st.none() | _moment,
    ended_after=st.none() | _moment,
    arguments=st.dictionaries(st.from_regex(r"[a-z_]+(\.[a-z0-9-]+)?", fullmatch=True), _text, max_size=3).map(
        lambda d: tuple(sorted(d.items()))
    ),
    cause=st.none() | st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    texts=st.lists(_text, max_size=3, unique=True).map(tuple),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_searches)
def test_what_is_written_reads_as_the_same(search: TaskSearch) -> None:
    assert read(search.text) == search


@given(_moment)
def test_an_end_is_written_and_read_as_the_same(before: datetime | timedelta) -> None:
    assert read(TaskSearch(created_before=before).text).created_before == before


@given(
    st.text(max_size=80)
    | st.from_regex(r'((role|state|id|priority|created|args\.x|error|nope):[^ ]{0,9}|["\\ <>.,]+|\w+| ){0,9}')
)
def test_any_text_is_read_or_told_wrong(text: str) -> None:
    found = parse(text)
    if isinstance(found, TaskSearch):
        assert parse(found.text) == found
        assert read(found.text).text == found.text
    else:
        assert all(0 <= fault.start < fault.end <= len(text) and fault.wrong and fault.right for fault in found)
        assert found == sorted(found, key=lambda fault: fault.start)


@given(st.text(max_size=40), st.integers(-2, 50))
def test_a_suggestion_lies_within_the_text(text: str, cursor: int) -> None:
    for one in suggest(text, cursor):
        assert 0 <= one.start <= one.end <= len(text)


def completed(text: str, known: dict[str, list[tuple[str, str]]] | None = None) -> list[str]:
    """What the text becomes by each suggestion; the cursor stands at the bar."""
    cursor = text.index("|")
    typed = text.replace("|", "")
    return [typed[: one.start] + one.text + typed[one.end :] for one in suggest(typed, cursor, known)]


def test_suggestions() -> None:
    assert completed("ro|") == ["role:"]
    assert completed("state:failed pr|") == ["state:failed priority:"]
    assert completed("role:product_|") == ["role:product_discovery", "role:product_refresh"]
    assert completed("role:fe|tch x") == ["role:payload_fetch x"]
    assert completed("state:failed,ca|") == ["state:failed,cancelled"]
    assert completed("status:run|") == ["status:running"]
    assert len(completed("|")) == 10
    assert completed("arg|") == ["args.payload_id:"]
    assert completed("created:>=-2|") == ["created:>=-24h"]
    stores = {"store": [("green-leaf", "Green Leaf, Phoenix"), ("gold", "Gold"), ("a b", "")]}
    assert completed("store:g|", stores)[:2] == ["store:green-leaf", "store:gold"]
    assert completed("store:phoe|", stores) == ["store:green-leaf"]
    assert completed('store:"a|', stores) == ['store:"a b"', "store:green-leaf"]
    assert completed("worker:x|") == []
