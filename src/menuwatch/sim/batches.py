"""Production batches of the market's products: tags, dates, certificates and terpenes. A batch is as long on sale as the laboratory's
results stay the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random

from menuwatch.sim.model import ProductState

TERPENES = (
    "B-Myrcene",
    "D-Limonene",
    "B-Caryophyllene",
    "Linalool",
    "A-Humulene",
    "A-Pinene",
    "Terpinolene",
    "Ocimene",
)
_WITHOUT = frozenset({"Accessories"})
_WITH_TERPENES = frozenset({"Flower", "Pre-Rolls", "Vaporizers", "Concentrate"})


@dataclass(frozen=True, slots=True)
class SimBatch:
    """One batch. `terpenes` are percentages by name."""

    number: str
    package_tag: str
    """24 letters and digits, as in METRC."""
    packaged_on: date
    tested_on: date
    expires_on: date
    certificate_url: str
    terpenes: tuple[tuple[str, float], ...]


def batch_of(state: ProductState) -> SimBatch | None:
    """The batch of a product that is on sale; None for what has none."""
    product = state.product
    if product.category in _WITHOUT:
        return None
    rng = Random(f"{product.id}:{state.lab}")
    packaged = datetime.fromtimestamp(product.created_ms / 1000, UTC).date() + timedelta(days=rng.randrange(30))
    number = f"PR.{packaged:%y%m%d}{rng.choice('FGH')}{rng.randrange(100, 999)}"
    names = (
        rng.sample(TERPENES, rng.randrange(3, 7)) if product.category in _WITH_TERPENES and rng.random() < 0.7 else []
    )
    return SimBatch(
        number=number,
        package_tag=f"1A4{rng.getrandbits(64) % 10**21:021d}",
        packaged_on=packaged,
        tested_on=packaged - timedelta(days=rng.randrange(1, 10)),
        expires_on=packaged + timedelta(days=365),
        certificate_url=f"https://lab.invalid/coa/{number}.pdf",
        terpenes=tuple((name, round(rng.uniform(0.02, 1.4), 3)) for name in names),
    )
