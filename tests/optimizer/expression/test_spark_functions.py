"""How many of Spark's functions a query may use: spark_functions.tsv says which count, the tables which are offered.

A line is a name as Spark 4.2 lists it (SHOW SYSTEM FUNCTIONS); names of one function count once, each cast as its own.
"""
from __future__ import annotations

from pathlib import Path

from optimizer.expression.functions.table import NAMES
from optimizer.sql.aggregates import AGGREGATES
from optimizer.sql.expressions import CASTS
from optimizer.sql.nested.overs import OFFSETS, PLACES

LIST = Path(__file__).with_name("spark_functions.tsv")
OFFERED = 261
# operators and forms that stand in no table of names; tests of the parser and of docs/queries.md hold them
WRITTEN = set("! != % & * + - / < <= <=> <> = == > >= ^ and between case cast div if ilike in like not or rlike "
              "try_cast when | || ~ session_window".split())
# FIRST_VALUE and LAST_VALUE stand after OVER only, in Spark also without it: they do not count.
OVER = (*PLACES, *OFFSETS, "NTH_VALUE")
GRAMMAR = {"timestampadd", "timestampdiff"}      # Spark's parser knows them, its list of functions does not


def functions() -> dict[str, set[str]]:
    """The names of each function that counts."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["name", "function", "counted", "reason"]
    by_function: dict[str, set[str]] = {}
    for line in lines[1:]:
        name, function, counted, reason = line.split("\t")
        assert (counted == "yes") != bool(reason), line
        if counted == "yes":
            by_function.setdefault(function, set()).add(name)
    return by_function


def test_so_many_of_sparks_functions_are_offered() -> None:
    known = functions()
    offered = {name.lower() for name in (*NAMES, *AGGREGATES, *CASTS, *OVER)} | WRITTEN
    assert len(known) == 490
    assert sum(bool(names & offered) for names in known.values()) == OFFERED


def test_every_name_is_one_of_sparks() -> None:
    names = {line.split("\t")[0] for line in LIST.read_text(encoding="utf-8").splitlines()[1:]}
    assert {name.lower() for name in (*NAMES, *AGGREGATES, *CASTS, *OVER)} - names == GRAMMAR
