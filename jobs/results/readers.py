"""How other programs read the answers at an address."""
from __future__ import annotations


def readers(path: str, name: str) -> list[tuple[str, str]]:
    """How others read the answers at an address, to be copied."""
    return [
        ("DuckDB", f"SELECT * FROM delta_scan('{path}')"),
        ("Spark", f'spark.read.format("delta").load("{path}")'),
        ("pandas", f'deltalake.DeltaTable("{path}").to_pandas()'),
        ("Polars", f'polars.read_delta("{path}")'),
        ("BI", f"CREATE VIEW {name} AS SELECT * FROM delta_scan('{path}')"),
        ("last one", f"the same with …/latest/{name}: its rows at the last boundary alone"),
    ]
