"""Tools about stores."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from menuwatch.core.errors import InvalidField
from menuwatch.core.shapes import doc
from menuwatch.geo.circle import DEFAULT_MILES, FARTHEST_MILES, PLACE_FORMS
from menuwatch.geo.units import METERS_PER_MILE, meters_between
from menuwatch.mcp.answer import Page, as_brief, in_brief
from menuwatch.mcp.inputs import STATE, area
from menuwatch.mcp.tool import Call, ListInput, Tool, state_name, tool
from menuwatch.stores import service
from menuwatch.stores.service import Freshness, LastCrawl, StoreDetail, StoreFilter
from menuwatch.stores.store import Store
from menuwatch.web.inputs import Input, Place, Search, State, StoreId, Text

_KEPT_OFF_LISTS = (
    "platform_dispensary_id", "shown", "details_by_person", "last_payload_id", "last_attempt_at", "phone", "timezone", "country",
    "created_at", "updated_at", "crawl_interval_hours",
)  # fmt: skip


StoreRow = in_brief(
    Store,
    "StoreRow",
    *_KEPT_OFF_LISTS,
    miles=Annotated[Decimal | None, doc("Distance from the place, in miles; null if no place was given.")],
)
CrawlResult = in_brief(LastCrawl, "CrawlResult", "warnings")
StoreFull = in_brief(StoreDetail, "StoreFull", last_crawl=CrawlResult | None)


class StoresInput(ListInput):
    """Which stores."""

    q: Search | None = Field(None, description="Only stores whose name, city or slug contains this text, in any case.")
    state: State | None = STATE
    platform: Text | None = Field(None, max_length=40, description="Only stores on this platform, such as dutchie.")
    freshness: Freshness | None = Field(
        None,
        description="Only stores with a menu of this age. `late`: overdue by a quarter of the crawl interval; `stale`: twice as old "
        "as the interval; `off`: not crawled.",
    )
    near: Place | None = Field(None, description=f"Only stores near this place, the nearest first: {PLACE_FORMS}.")
    miles: float = Field(
        DEFAULT_MILES, gt=0, le=FARTHEST_MILES, allow_inf_nan=False, description="Distance from `near`, in miles."
    )


@tool("Search stores", StoresInput, row=StoreRow)
async def search_stores(call: Call, query: StoresInput) -> Page:
    """Stores with address, position, time of the last crawl and number of products; by id, or near a place the nearest first."""
    circle, label = (None, state_name(query.state)) if query.near is None else area(query.near, query.miles)
    if query.near is None and "miles" in query.model_fields_set:
        raise InvalidField("miles", "needs `near`: the place that the distance is from")
    where = StoreFilter(
        q=query.q,
        states=None if query.state is None else [query.state],
        platform=query.platform,
        freshness=None if query.freshness is None else [query.freshness],
        circle=circle,
    )
    rows: list[Any]
    following: tuple[int] | None
    if circle is None:
        (after,) = call.after(tuple[int]) or (None,)
        found = await service.list_stores(call.conn, where, after=after, limit=call.limit + 1)
        rows = [as_brief(StoreRow, store, miles=None) for store in found[: call.limit]]
        following = (rows[-1].id,) if len(found) > call.limit else None
    else:
        distances = []
        for store in await service.list_stores(call.conn, where, limit=None):
            meters = meters_between((circle.latitude, circle.longitude), (store.latitude or 0, store.longitude or 0))
            distances.append((meters, store.id, store))
        part, following = call.part_of(sorted(distances))
        rows = [as_brief(StoreRow, store, miles=Decimal(f"{far / METERS_PER_MILE:.1f}")) for far, _, store in part]
    observed = await call.observed(label, where, shown=[row.id for row in rows] or None)
    return Page(rows=rows, next=following, **observed)


class StoreInput(Input):
    """Which store."""

    store_id: StoreId = Field(description="Id of the store, as from search_stores.")


@tool("Get a store", StoreInput, store=StoreFull)
async def get_store(call: Call, query: StoreInput) -> Page:
    """One store with its address, crawl settings, data quality score, and what its last crawl changed."""
    found = await service.get_store(call.conn, query.store_id)
    last = None if found.last_crawl is None else as_brief(CrawlResult, found.last_crawl)
    observed = await call.observed(f"store {found.name}", StoreFilter(), [found.id])
    return Page(members={"store": as_brief(StoreFull, found, last_crawl=last)}, **observed)


TOOLS: tuple[Tool[Any], ...] = (search_stores, get_store)
