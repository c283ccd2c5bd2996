"""Airflow imports this when it starts: its scheduler then has what tasks import, and each task, which is a fork of it,
starts within milliseconds.

Modules only: a connection, a channel or a thread would not outlive the fork; so deltalake, which starts threads, is not
here.
"""
import sys

if "scheduler" in sys.argv:      # the other processes stay light
    import duckdb  # noqa: F401
    import grpc  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.compute  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pyspark.sql.connect.session  # noqa: F401
    import sqlglot  # noqa: F401
    import yaml  # noqa: F401
