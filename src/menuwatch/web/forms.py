"""What was typed into a form, and what is wrong with it: a page that refuses shows both, beside the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Form:
    """`values` as they were typed; `errors` by the field's name, `""` for what belongs to none."""

    values: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """What was typed, `""` where nothing was."""
        return self.values.get(name, "")

    def wrong(self, name: str) -> str:
        """What is wrong with it, `""` where nothing is."""
        return self.errors.get(name, "")

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.errors

    def refuse(self, name: str, why: str) -> None:
        """Notes what is wrong with a field; the first word on each stands."""
        self.errors.setdefault(name, why)

    def text(self, name: str) -> str | None:
        """What was typed, without spaces around it; None where nothing was."""
        return self.value(name).strip() or None

    def whole(self, name: str, *, low: int, high: int) -> int | None:
        """A whole number in that range; notes what is wrong where it is none, and gives None."""
        text = self.text(name)
        if text is None:
            return None
        try:
            found = int(text.replace(",", ""))
        except ValueError:
            self.refuse(name, f"a whole number from {low:,} to {high:,}, not {text[:40]!r}")
            return None
        if not low <= found <= high:
            self.refuse(name, f"{found:,} is too {'small' if found < low else 'large'}: from {low:,} to {high:,}")
            return None
        return found

    def one_of(self, name: str, allowed: Mapping[str, object] | list[str] | tuple[str, ...]) -> str | None:
        """One of some words; notes what is wrong where it is another, and gives None."""
        text = self.text(name)
        if text is not None and text not in allowed:
            self.refuse(name, f"{text[:40]!r} is not one of {', '.join(allowed)}")
            return None
        return text
