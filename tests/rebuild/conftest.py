"""The same store as the tests of the API have, on a platform that names batches, lab values and sold counts."""

from __future__ import annotations

import pytest

from menuwatch.platforms.base import Platform
from tests.api.conftest import app, archive, shop
from tests.rebuild.random_histories import WithBatches

__all__ = ["app", "archive", "shop"]


@pytest.fixture
def platforms() -> dict[str, Platform]:
    return {"dutchie": WithBatches()}
