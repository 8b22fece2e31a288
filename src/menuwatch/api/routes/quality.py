"""Data quality: findings, the quality of stores, and rules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from msgspec import Struct
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import INTEGER_MAX, Input, NoQuery, PageQuery, State, StoreId, StorePath, Text
from menuwatch.api.paging import Keyset
from menuwatch.api.responses import answer, returns, returns_page
from menuwatch.quality import service as quality
from menuwatch.quality.attribution import Scope
from menuwatch.quality.audit import AuditedValue, list_audits
from menuwatch.quality.measures import NAMES, Severity
from menuwatch.quality.service import (
    CategoryWord,
    Condition,
    Finding,
    FindingFilter,
    FindingStatus,
    QualityRule,
    QualitySummary,
    StoreQuality,
    StoreQualityDetail,
    store_key,
)
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import ReadConn, WriteConn

router = APIRouter(prefix="/api/quality", tags=["quality"], dependencies=[require_by_method(Permission.ALERTS)])

_PLATFORM = Annotated[Text | None, Field(description="Only stores on this platform.")]
_STATE = Annotated[State | None, Field(description="Only stores in this state (two letters).")]
_MEASURES = ", ".join(NAMES)


class FindingQuery(PageQuery):
    """Which findings."""

    status: FindingStatus = Field("open", description="Only open or closed findings, or `all`.")
    severity: list[Severity] | None = Field(None, description="Only these severities (repeatable).")
    scope: Scope | None = Field(None, description="Only findings with this cause.")
    measure: Text | None = Field(None, description="Only this measure, or a family of measures such as `null`.")
    store: list[StoreId] | None = Field(None, description="Only these stores (repeatable).")
    platform: _PLATFORM = None
    state: _STATE = None


class QualityStoresQuery(PageQuery):
    """Which stores."""

    platform: _PLATFORM = None
    state: _STATE = None


class CategoryWordQuery(PageQuery):
    """Which words."""

    platform: _PLATFORM = None
    events: bool = Field(True, description="Only words that first appeared after the first day of their platform.")
    unknown: bool = Field(False, description="Only words that the taxonomy does not know.")


class NewQualityRule(Input):
    """A rule to add."""

    measure: Annotated[Text, Field(max_length=80)] = Field(
        description=f"One of {_MEASURES}; or a family, such as `null.*`."
    )
    condition: Condition = Field(
        description="`above`, `below`: report a finding if the value is above or below `value`; `ignore`: do not monitor the measure."
    )
    amount: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        None, description="Limit: shares are from 0 to 1. Not for `ignore`."
    )
    severity: Severity | None = Field(
        None, description="Severity of its findings; `warning` if omitted. Not for `ignore`."
    )
    platform: Annotated[Text, Field(max_length=40)] | None = Field(None, description="Only stores on this platform.")
    store: StoreId | None = Field(None, description="Only this store.")
    note: Annotated[Text, Field(max_length=500)] | None = Field(None, description="Reason for the rule.")


class PointOfSale(Input):
    """The software that a shop uses."""

    name: Annotated[Text, Field(max_length=200)] | None = Field(
        description="Name of the software; null if it is unknown."
    )


class QualityRuleList(Struct, kw_only=True, frozen=True):
    """All rules, oldest first."""

    items: list[QualityRule]


RulePath = Annotated[int, Path(ge=1, le=INTEGER_MAX, description="Id of the rule.")]


@router.get("", **returns(QualitySummary), summary="Summarize data quality")
async def get_quality_summary(request: Request, conn: ReadConn, query: Annotated[NoQuery, Query()]) -> Response:
    """Counts measured stores and open findings. New menus are checked every five minutes."""
    return answer(request, await quality.get_summary(conn))


@router.get("/findings", **returns_page(Finding), summary="List findings")
async def list_quality_findings(request: Request, conn: ReadConn, query: Annotated[FindingQuery, Query()]) -> Response:
    """Lists measures of stores outside their bands, and those that meet a rule, newest first."""
    where = FindingFilter(**query.model_dump(exclude={"cursor", "limit"}))
    pages = Keyset(
        query, tuple[datetime, int], "quality_findings", *query.model_dump(exclude={"cursor", "limit"}).values()
    )
    rows = await quality.list_findings(conn, where, before=pages.after, limit=pages.limit)
    return pages.page(request, rows, lambda row: (row.opened_at, row.id))


@router.get("/stores", **returns_page(StoreQuality), summary="List the quality of stores")
async def list_store_quality(
    request: Request, conn: ReadConn, query: Annotated[QualityStoresQuery, Query()]
) -> Response:
    """Lists stores by score, the worst first; those without a score last."""
    pages = Keyset(query, tuple[int, int], "quality_stores", query.platform, query.state)
    rows = await quality.list_stores(
        conn, platform=query.platform, state=query.state, after=pages.after, limit=pages.limit
    )
    return pages.page(request, rows, store_key)


@router.get("/stores/{store_id}", **returns(StoreQualityDetail), summary="Get the quality of a store")
async def get_store_quality(
    request: Request, conn: ReadConn, store_id: StorePath, query: Annotated[NoQuery, Query()]
) -> Response:
    """Returns its score, the measures of its last menu with their bands, and its open findings."""
    return answer(request, await quality.get_store(conn, store_id))


@router.put("/stores/{store_id}/point-of-sale", **returns(StoreQuality), summary="Set the point of sale of a store")
async def set_point_of_sale(request: Request, conn: WriteConn, store_id: StorePath, new: PointOfSale) -> Response:
    """Findings that the stores of one point of sale have in common are then attributed to it."""
    return answer(request, await quality.set_point_of_sale(conn, store_id, new.name))


@router.get("/category-words", **returns_page(CategoryWord), summary="List category words of platforms")
async def list_category_words(
    request: Request, conn: ReadConn, query: Annotated[CategoryWordQuery, Query()]
) -> Response:
    """Lists new category words of platforms, newest first."""
    where = query.model_dump(exclude={"cursor", "limit"})
    pages = Keyset(query, tuple[datetime, str, str], "category_words", *where.values())
    rows = await quality.list_words(conn, **where, before=pages.after, limit=pages.limit)
    return pages.page(request, rows, lambda row: (row.first_seen_at, row.platform, row.word))


@router.get("/audits", **returns_page(AuditedValue), summary="List audited values")
async def list_audited_values(request: Request, conn: ReadConn, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists values of the weekly samples, traced back to the bytes of their payload, newest first."""
    pages = Keyset(query, int, "quality_audits")
    rows = await list_audits(conn, before=pages.after, limit=pages.limit)
    return pages.page(request, rows, lambda row: row.id)


@router.get("/rules", **returns(QualityRuleList), summary="List data quality rules")
async def list_quality_rules(request: Request, conn: ReadConn, query: Annotated[NoQuery, Query()]) -> Response:
    """Lists the rules that operators added."""
    return answer(request, QualityRuleList(items=await quality.list_rules(conn)))


@router.post("/rules", **returns(QualityRule, 201), summary="Add a data quality rule")
async def add_quality_rule(request: Request, conn: WriteConn, new: NewQualityRule) -> Response:
    """Applies to menus checked from now on."""
    return answer(request, await quality.add_rule(conn, **new.model_dump()), status=201)


@router.delete("/rules/{rule_id}", **returns(QualityRule), summary="Remove a data quality rule")
async def remove_quality_rule(request: Request, conn: WriteConn, rule_id: RulePath) -> Response:
    """Removes a rule with its findings; returns it as it was."""
    return answer(request, await quality.remove_rule(conn, rule_id))
