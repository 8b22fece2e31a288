"""Checks that every adapter must pass, for adapters of this package and of others. Needs no test framework:

    SAMPLE = Sample(adapter=Acme(), pages=[Path("sample.json").read_bytes()], total="total")

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(SAMPLE)

A check raises AssertionError with the field, the value and what the adapter did with it. The checks change the items of a sample in
every field: so the more fields a sample has, the more they find. `docs/how-to/add-a-platform.md` explains each.
"""

from menuwatch.platforms.conformance.checks import CHECKS, Check
from menuwatch.platforms.conformance.sample import Sample, SentRequest

__all__ = ["CHECKS", "Check", "Sample", "SentRequest"]
