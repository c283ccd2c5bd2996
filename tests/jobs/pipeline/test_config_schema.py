"""docs/forebay.schema.json is the form that jobs.pipeline.document reads, and takes what is right and nothing that is
plainly wrong.
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from jobs.pipeline.document import json_schema

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "docs" / "forebay.schema.json"
EXAMPLES = sorted((ROOT / "forebay" / "examples").glob("*/forebay.yml"))
PAGE = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "forebay-yml.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    return jsonschema.Draft202012Validator(json_schema())


def test_the_file_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(SCHEMA, json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_it_takes_the_examples(validator: Any, path: Path) -> None:
    assert list(validator.iter_errors(yaml.safe_load(path.read_text(encoding="utf-8")))) == []


def test_it_takes_all_that_the_docs_list(validator: Any) -> None:
    assert len(EXAMPLES) >= 3 and PAGE is not None
    assert list(validator.iter_errors(yaml.safe_load(PAGE[1]))) == []


GOOD: dict[str, Any] = {
    "name": "traffic",
    "batch": "10 Seconds",
    "streams": {
        "views": {
            "columns": {
                "ts": "TIMESTAMP",
                "price": {
                    "type": "numeric(10, 2)"
                }
            },
            "event_time": "ts",
            "wait": 0,
            "keep": "for ever"
        }
    }
}


def with_stream(**keys: Any) -> dict[str, Any]:
    return {**GOOD, "streams": {"views": {**GOOD["streams"]["views"], **keys}}}


def test_it_takes_other_ways_of_writing(validator: Any) -> None:
    assert validator.is_valid(GOOD)
    assert validator.is_valid({
        **GOOD, "spark": {
            "settings": {
                "spark.sql.shuffle.partitions": 4
            }
        },
        "relations": None,
        "latency": None
    })
    assert validator.is_valid(with_stream(ahead=None))


@pytest.mark.parametrize(("document", "path"),
                         [({
                             **GOOD, "steams": {}
                         }, []), ({
                             "name": "traffic",
                             "batch": "1 hour"
                         }, []), ({
                             **GOOD, "name": "my pipeline"
                         }, ["name"]), ({
                             **GOOD, "batch": "10"
                         }, ["batch"]), ({
                             **GOOD, "batch": "10 parsecs"
                         }, ["batch"]), (with_stream(wiat="1 s"), ["streams", "views"]),
                          (with_stream(columns={"_a": "int"}), ["streams", "views", "columns"]),
                          (with_stream(columns={"a": "number"}), ["streams", "views", "columns", "a"]),
                          (with_stream(unknown_columns="ignore"), ["streams", "views", "unknown_columns"]),
                          (with_stream(source={"parquet": "x"}), ["streams", "views", "source"])])
def test_it_marks_what_is_wrong(validator: Any, document: dict[str, Any], path: list[str]) -> None:
    assert [list(error.absolute_path) for error in validator.iter_errors(document)] == [path]
