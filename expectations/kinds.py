"""The expectations that can be declared, by Great Expectations' names: what each is about and what it takes.

Nothing here has seen a row.
"""
from __future__ import annotations

from dataclasses import dataclass

from optimizer.expression.types import Type

SEVERITIES = ("critical", "warning", "row")
LEAST, MOST, STRICT_LEAST, STRICT_MOST, SET, PATTERN, OR_EQUAL, MOSTLY = (
    "min_value", "max_value", "strict_min", "strict_max", "value_set", "regex", "or_equal", "mostly")
BOUNDS, FLAGS = (LEAST, MOST), (STRICT_LEAST, STRICT_MOST, OR_EQUAL)


@dataclass(frozen=True)
class Kind:
    """`row`: each row is judged by itself. `columns` are the parameters that name columns, `takes` the family they must
    be of; `values` are the others, `of` what bounds and sets hold: values of the column, a `number`, a `count` or a
    `share`."""

    name: str
    row: bool
    columns: tuple[str, ...] = ("column",)
    values: tuple[str, ...] = ()
    of: str = "column"
    takes: str = "any"

    @property
    def parameters(self) -> tuple[str, ...]:
        return (*self.columns, *self.values, *((MOSTLY,) if self.row else ()))


KINDS = {
    kind.name: kind
    for kind in (Kind("expect_column_values_to_not_be_null", True),
                 Kind("expect_column_values_to_be_between", True, values=(*BOUNDS, STRICT_LEAST,
                                                                          STRICT_MOST), takes="ordered"),
                 Kind("expect_column_values_to_be_in_set", True, values=(SET,)),
                 Kind("expect_column_values_to_not_be_in_set", True, values=(SET,)),
                 Kind("expect_column_values_to_match_regex", True, values=(PATTERN,), takes="string"),
                 Kind("expect_column_values_to_not_match_regex", True, values=(PATTERN,), takes="string"),
                 Kind("expect_column_value_lengths_to_be_between", True, values=BOUNDS, of="count", takes="string"),
                 Kind("expect_column_pair_values_a_to_be_greater_than_b", True, ("column_A", "column_B"), (
                     OR_EQUAL,), takes="ordered"), Kind("expect_column_values_to_be_unique", False),
                 Kind("expect_compound_columns_to_be_unique", False, ("column_list",)),
                 Kind("expect_table_row_count_to_be_between", False, (), BOUNDS, of="count"),
                 Kind("expect_column_min_to_be_between", False, values=BOUNDS, takes="ordered"),
                 Kind("expect_column_max_to_be_between", False, values=BOUNDS, takes="ordered"),
                 Kind("expect_column_mean_to_be_between", False, values=BOUNDS, of="number", takes="numeric"),
                 Kind("expect_column_sum_to_be_between", False, values=BOUNDS, of="number", takes="numeric"),
                 Kind("expect_column_proportion_of_non_null_values_to_be_between", False, values=BOUNDS, of="share"),
                 )
}


def suits(kind: Kind, type_: Type) -> bool:
    return {
        "any": True,
        "ordered": type_.name != "boolean",
        "numeric": type_.numeric,
        "string": type_.name == "string"
    }[kind.takes]
