"""Tools about data quality."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from menuwatch.mcp.answer import Page
from menuwatch.mcp.inputs import STATE, STORE
from menuwatch.mcp.tool import Call, ListInput, Tool, state_name, tool
from menuwatch.quality import service
from menuwatch.quality.measures import NAMES, Severity
from menuwatch.quality.service import Finding, FindingFilter, FindingStatus, QualitySummary, StoreQuality, store_key
from menuwatch.stores.service import StoreFilter
from menuwatch.web.inputs import State, StoreId, Text

_PLATFORM: Text | None = Field(None, max_length=40, description="Only stores on this platform, such as dutchie.")


class ScoresInput(ListInput):
    """Which stores."""

    platform: Text | None = _PLATFORM
    state: State | None = STATE


@tool("Data quality of stores", ScoresInput, row=StoreQuality, summary=QualitySummary)
async def list_quality_scores(call: Call, query: ScoresInput) -> Page:
    """Data quality score of each store (0 to 100, the worst first) with its open findings; `summary` covers all stores."""
    after = call.after(tuple[int, int])
    found = await service.list_stores(
        call.conn, platform=query.platform, state=query.state, after=after, limit=call.limit + 1
    )
    rows = found[: call.limit]
    where = StoreFilter(platform=query.platform, states=None if query.state is None else [query.state])
    observed = await call.observed(state_name(query.state), where)
    members = {"summary": await service.get_summary(call.conn)}
    following = store_key(rows[-1]) if len(found) > call.limit else None
    return Page(rows=rows, next=following, members=members, **observed)


class FindingsInput(ListInput):
    """Which findings."""

    status: FindingStatus = Field("open", description="Open or closed findings, or `all`.")
    severity: Severity | None = Field(None, description="Only this severity.")
    measure: Text | None = Field(
        None, max_length=80, description=f"Only this measure, or a family such as `null`: {', '.join(NAMES)}."
    )
    store_id: StoreId | None = STORE
    platform: Text | None = _PLATFORM
    state: State | None = STATE


@tool("Findings of data quality", FindingsInput, row=Finding)
async def list_quality_findings(call: Call, query: FindingsInput) -> Page:
    """Measures of menus that are unusual for their store (prices, stock, missing fields, changes), newest first."""
    where = FindingFilter(
        status=query.status,
        severity=None if query.severity is None else [query.severity],
        measure=query.measure,
        store=None if query.store_id is None else [query.store_id],
        platform=query.platform,
        state=query.state,
    )
    after = call.after(tuple[datetime, int])
    found = await service.list_findings(call.conn, where, before=after, limit=call.limit + 1)
    rows = found[: call.limit]
    stores = StoreFilter(platform=query.platform, states=None if query.state is None else [query.state])
    scope = state_name(query.state) if query.store_id is None else f"store {query.store_id}"
    observed = await call.observed(scope, stores, where.store)
    return Page(rows=rows, next=(rows[-1].opened_at, rows[-1].id) if len(found) > call.limit else None, **observed)


TOOLS: tuple[Tool[Any], ...] = (list_quality_scores, list_quality_findings)
