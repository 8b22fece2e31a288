"""A question with a known answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tests.mcp.clients import Asking, Failed

Truth = TypeVar("Truth")
Answered = tuple[Any, Any]
"""What the tools answered, and what is right."""
Answerer = Callable[[Asking, Truth], Awaitable[Answered]]


@dataclass(slots=True)
class Questions(Generic[Truth]):
    """Questions about one market."""

    market: str
    questions: list[tuple[str, Answerer[Truth]]] = field(default_factory=list)

    def ask(self, text: str) -> Callable[[Answerer[Truth]], Answerer[Truth]]:
        """Decorator: adds a question."""

        def add(answerer: Answerer[Truth]) -> Answerer[Truth]:
            self.questions.append((text, answerer))
            return answerer

        return add


@dataclass(frozen=True, slots=True)
class Result:
    """How a question was answered."""

    market: str
    text: str
    got: Any
    expected: Any
    calls: int

    @property
    def is_exact(self) -> bool:
        return bool(self.got == self.expected)

    def __str__(self) -> str:
        mark = "ok  " if self.is_exact else "WRONG"
        rest = "" if self.is_exact else f"\n      got {str(self.got)[:300]}\n      expected {str(self.expected)[:300]}"
        return f"{mark} {self.market:9} {self.calls:2} calls  {self.text}{rest}"


async def answer_all(questions: Questions[Truth], asking: Asking, truth: Truth, every: int = 1) -> list[Result]:
    """Asks every question, or every so many, in one session."""
    results = []
    for text, answerer in questions.questions[::every]:
        before = asking.calls
        try:
            got, expected = await answerer(asking, truth)
        except Failed as error:
            got, expected = f"error: {error}", "an answer"
        results.append(Result(questions.market, text, got, expected, asking.calls - before))
    return results
