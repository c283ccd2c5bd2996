"""The optimizer decides: pure functions from SQL text to priced plans and their SQL.

No Spark, no Airflow, no files, no clock.
"""
