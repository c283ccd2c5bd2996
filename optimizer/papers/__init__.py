"""The papers' formulas as printed: costs of aggregation joins, window joins and sharing."""
