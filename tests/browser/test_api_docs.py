"""The API viewer: loads offline under the content security policy, and shows every operation."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Served, shot


def test_operations_are_listed_opened_and_tried(page: Page, server: Served, complaints: list[str]) -> None:
    page.goto(f"{server.address}/docs")
    page.get_by_role("heading", name="Menuwatch").wait_for()
    described = page.request.get(f"{server.address}/openapi.json").json()
    operations = [method for methods in described["paths"].values() for method in methods.values()]
    for tag in (
        "catalog",
        "tasks",
        "health",
    ):  # only operations in view are drawn, so the list is narrowed to one tag
        page.get_by_placeholder("Filter by tag or path").fill(tag)
        listed = page.locator(
            f"#operations-tag-{tag} ~ .no-margin .opblock, .opblock-tag-section:has(#operations-tag-{tag}) .opblock"
        )
        expect(listed).to_have_count(sum(tag in one["tags"] for one in operations))
    shot(page, "api-docs")
    page.goto(f"{server.address}/docs#/tasks/count_tasks")
    page.reload()
    opened = page.locator("#operations-tasks-count_tasks")
    opened.get_by_role("button", name="Execute", exact=True).click()
    opened.locator(".live-responses-table .response-col_status", has_text="200").wait_for()
    # Of Swagger UI itself, whenever an operation's id has an underscore.
    complaints[:] = [text for text in complaints if "escaping deep link whitespace" not in text]
