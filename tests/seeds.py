"""The seed of a run as `conftest` leaves it, for what draws while tests are collected, and without Hypothesis."""
from __future__ import annotations

import os


def seed() -> int:
    return int(os.environ.get("FOREBAY_SEED", "1"))
