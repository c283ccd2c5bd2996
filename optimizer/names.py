"""What queries, streams, relations, columns and pipelines may be called.

Imports nothing, since parsing DAGs and serving pages ask it too.
"""
from __future__ import annotations

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"      # whole, and ASCII: a name becomes a folder, a column, a DAG's
