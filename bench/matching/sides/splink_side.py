"""Splink on DuckDB: prepared columns, blocking, u by random sampling, m by expectation maximization, connected components.

Its input is prepared as its documentation advises: words in lower case, the brand out of the name, sizes, form, strain type and
numbers in columns of their own. With a third file of labelled pairs that are the same, m is taken from those instead of trained
without labels. Groups are given for many thresholds; the bench takes the one of the best F1 on the labelled pairs. Both favour
Splink. Seconds include one of these clusterings.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import side
import splink
import splink.comparison_level_library as cll
import splink.comparison_library as cl
from splink import Linker, SettingsCreator, block_on
from splink.internals.duckdb.database_api import DuckDBAPI

THRESHOLDS = tuple(range(-8, 26))
"""Match weights, in bits."""
USUAL = 6
_WORD = re.compile(r"[a-z0-9]+")
_SIZE = re.compile(r"(?<![\w.])(?:\d+/\d+|\d*\.?\d+)\s*-?\s*(?:mg|grams?|g|oz|ml)\b|\b\d+\s*-?\s*(?:ct|pk|pack)\b")
_STRAIN = re.compile(r"\b(indica|sativa|hybrid)\b")
_FORMS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("disposable", r"disposable|all.in.one|\baio\b"),
        ("cartridge", r"\bcart(?:ridge)?s?\b"),
        ("pod", r"\bpods?\b"),
        ("preroll", r"pre.?roll|joint|blunt"),
        ("ground", r"ground|shake"),
        ("small", r"small|mini.?bud|popcorn"),
        ("badder", r"badder|budder|batter"),
        ("sugar", r"\bsugar"),
        ("sauce", r"\bsauce"),
        ("shatter", r"shatter"),
        ("crumble", r"crumble"),
        ("diamonds", r"diamond"),
        ("rosin", r"rosin"),
        ("live_resin", r"live.?resin|\bllr\b|\blr\b"),
        ("wax", r"\bwax\b"),
        ("rso", r"\brso\b"),
        ("gummies", r"gumm"),
        ("chocolate", r"chocolate"),
        ("tincture", r"tincture"),
        ("capsule", r"capsule"),
    )
)
_OF_FORM = re.compile(
    "|".join(pattern.pattern for _, pattern in _FORMS) + r"|\b(?:vapes?|flower|premium|live|whole|pen|concentrate)\b"
)


def prepare(rows: side.type_rows) -> pa.Table:
    """One row of columns to compare for each listing."""
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "unique_id",
            "name",
            "words",
            "brand",
            "family",
            "category",
            "size",
            "form",
            "strain",
            "number",
            "price",
            "jane",
        )
    }
    for i, row in enumerate(rows):
        brand = _WORD.findall((row.get("brand") or "").lower())
        text = row["name"].lower()
        menu = (row.get("subcategory") or "").lower().replace("_", " ")
        strain = _STRAIN.search(text)
        form = [name for name, pattern in _FORMS if pattern.search(text)]
        form = form or [name for name, pattern in _FORMS if pattern.search(menu)]
        bare = _OF_FORM.sub(" ", _STRAIN.sub(" ", _SIZE.sub(" ", text)))
        own = [word for word in _WORD.findall(bare) if word not in brand] or _WORD.findall(text)
        stated = _SIZE.search(text)
        columns["unique_id"].append(i)
        columns["name"].append(" ".join(own))
        columns["words"].append(sorted(set(own)))
        columns["brand"].append(" ".join(brand) or None)
        columns["family"].append(brand[0] if brand else None)
        columns["category"].append((row.get("category") or "").lower() or None)
        columns["size"].append(
            str(row["grams"]) if row.get("grams") else stated[0].replace(" ", "") if stated else None
        )
        columns["form"].append(" ".join(form) or None)
        columns["strain"].append(strain[1] if strain else None)
        columns["number"].append(" ".join(word for word in own if word.isdigit()))
        columns["price"].append(row.get("price"))
        columns["jane"].append((row.get("platform_ids") or [None])[0])
    common = {word for word, _ in Counter(w for words in columns["words"] for w in words).most_common(40)}
    columns["rare"] = [[w for w in words if w not in common] or words for words in columns["words"]]
    return pa.table(columns)


def _words() -> Any:
    shared = "list_unique(list_intersect(words_l, words_r))"
    union = "list_unique(list_concat(words_l, words_r))"
    return cl.CustomComparison(
        [
            cll.NullLevel("name"),
            cll.ExactMatchLevel("name", term_frequency_adjustments=True),
            cll.CustomLevel(f"{shared} = {union}", "same words"),
            cll.CustomLevel("replace(name_l, ' ', '') = replace(name_r, ' ', '')", "joined"),
            cll.CustomLevel(f"{shared} >= 0.75 * {union}", "Jaccard 0.75"),
            cll.JaroWinklerLevel("name", 0.92),
            cll.CustomLevel(f"{shared} >= 0.5 * {union}", "Jaccard 0.5"),
            cll.JaroWinklerLevel("name", 0.8),
            cll.CustomLevel(f"{shared} >= 1", "a shared word"),
            cll.ElseLevel(),
        ],
        output_column_name="name",
    )


def _labels(rows: side.type_rows) -> pa.Table | None:
    """The pairs of a third file, if it is given, as ids of rows."""
    if len(sys.argv) < 4:
        return None
    at = {row["listing_id"]: i for i, row in enumerate(rows)}
    pairs = [sorted((at[a], at[b])) for a, b in json.loads(Path(sys.argv[3]).read_text(encoding="utf-8"))]
    left, right = zip(*pairs, strict=True)
    return pa.table({"unique_id_l": left, "unique_id_r": right})


def group(rows: side.type_rows) -> side.Answer:
    logging.getLogger("splink").setLevel(logging.ERROR)
    api = DuckDBAPI()
    frame = api.register(prepare(rows))
    settings = SettingsCreator(
        link_type="dedupe_only",
        blocking_rules_to_generate_predictions=[
            block_on("family", "category", "size"),
            block_on("family", "category", "rare", arrays_to_explode=["rare"]),
            block_on("name", "category"),
            *([block_on("jane")] if any(row.get("platform_ids") for row in rows) else []),
        ],
        comparisons=[
            _words(),
            cl.JaroWinklerAtThresholds("brand", [0.95, 0.88]).configure(term_frequency_adjustments=True),
            cl.ExactMatch("size"),
            cl.ExactMatch("form"),
            cl.ExactMatch("strain"),
            cl.ExactMatch("number"),
            cl.CustomComparison(
                [
                    cll.NullLevel("price"),
                    cll.ExactMatchLevel("price"),
                    cll.PercentageDifferenceLevel("price", 0.15),
                    cll.ElseLevel(),
                ],
                output_column_name="price",
            ),
        ],
    )
    linker = Linker(frame, settings)
    linker.training.estimate_probability_two_random_records_match(
        [block_on("brand", "name", "size", "category")], recall=0.5
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=2e6, seed=1)
    train = linker.training.estimate_parameters_using_expectation_maximisation
    labels = _labels(rows)
    if labels is not None:
        linker.training.estimate_m_from_pairwise_labels(api.register(labels))
    else:
        train(block_on("family", "category", "size"), record_sample_proportion=1.0)
        train(block_on("name"), record_sample_proportion=1.0)
    predictions = linker.inference.predict(threshold_match_weight=THRESHOLDS[0])
    groups: list[list[Any]] = [[] for _ in rows]
    for threshold in THRESHOLDS if len(rows) < 50_000 else (USUAL,):
        clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(
            predictions, threshold_match_weight=threshold
        )
        found = {one["unique_id"]: one["cluster_id"] for one in clusters.as_record_list()}
        for i, values in enumerate(groups):
            values.append(found[i])
    return [str(one) for one in (THRESHOLDS if len(rows) < 50_000 else (USUAL,))], groups


if __name__ == "__main__":
    side.serve(splink.__version__, group)
