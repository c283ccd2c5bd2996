"""What rows are aggregated to: a function of the values of an expression. No plan and no SQL here."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from optimizer.expression.expr import Expr
from optimizer.expression.types import Type

MERGEABLE = ("count", "sum", "avg", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop")
# of two arguments, which are those of a call of "pair"
PAIRED = ("corr", "covar_pop", "covar_samp", "regr_sxx", "regr_sxy", "regr_syy", "regr_slope", "regr_intercept",
          "regr_r2")
HOLISTIC = ("count_distinct", "median", "percentile", "percentile_disc", "bit_and", "bit_or", "bit_xor", "listagg",
            *PAIRED)      # never aggregated early


@dataclass(frozen=True)
class Aggregate:
    """`count` without argument is COUNT(*).

    FILTER is folded into the argument as CASE WHEN … THEN argument END. `parameter` is percentile's.
    """

    function: str
    argument: Expr | None
    type: Type
    parameter: float | None = None

    def __post_init__(self) -> None:
        if self.function not in MERGEABLE + HOLISTIC:
            raise ValueError(f"aggregate {self.function!r}")

    def of(self, change: Callable[[Expr], Expr]) -> Aggregate:
        """The same of a changed argument."""
        return self if self.argument is None else replace(self, argument=change(self.argument))
