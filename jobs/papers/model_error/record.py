"""What was measured, a line of JSON a setting in a file: a run that was ended goes on from there, and prices can be
fitted again without measuring anew.
"""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from jobs.ledger.codec import decode_form, encode_form
from jobs.papers.model_error.measuring import PlanPoint, SettingRecord
from jobs.papers.model_error.settings import PriceSetting
from optimizer.statistics.model import InputStatistics, KeyStatistics, QueryStatistics


class Records:
    """The file of a run: `Records("model-error.jsonl").of(setting)` is what was measured of a setting, or None."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._by_sql: dict[tuple[str, str], SettingRecord] = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for record in map(decode, filter(str.strip, file)):
                    self._by_sql[record.setting.world, record.setting.sql] = record

    def of(self, setting: PriceSetting) -> SettingRecord | None:
        return self._by_sql.get((setting.world, setting.sql))

    def add(self, record: SettingRecord) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(encode(record) + "\n")
        self._by_sql[record.setting.world, record.setting.sql] = record


def encode(record: SettingRecord) -> str:
    points = [{"form": encode_form(point.plan), "building_s": point.building_s,
               "building_task_s": point.building_task_s, "boundaries": point.boundaries} for point in record.points]
    return json.dumps({"setting": asdict(record.setting), "statistics": asdict(record.statistics), "points": points,
                       "left_out": record.left_out})


def decode(line: str) -> SettingRecord:
    document = json.loads(line)
    points = tuple(_point(point) for point in document["points"])
    return SettingRecord(PriceSetting(**document["setting"]), _statistics(document["statistics"]), points,
                         document["left_out"])


def _point(document: Mapping[str, Any]) -> PlanPoint:
    boundaries = tuple((float(took), float(task)) for took, task in document["boundaries"])
    return PlanPoint(decode_form(document["form"]), document["building_s"], document["building_task_s"], boundaries)


def _statistics(document: Mapping[str, Any]) -> QueryStatistics:
    inputs = tuple(InputStatistics(**one) for one in document["inputs"])
    classes = tuple(map(_key, document["classes"]))
    return QueryStatistics(**{**document, "inputs": inputs, "classes": classes})


def _key(document: Mapping[str, Any]) -> KeyStatistics:
    def shares(name: str) -> dict[int, tuple[float, ...]]:
        return {int(i): tuple(values) for i, values in document[name].items()}

    heavy = None if document["heavy"] is None else _key(document["heavy"])
    return KeyStatistics(document["keys"], document["share"], shares("rows"), shares("combinations"), heavy)
