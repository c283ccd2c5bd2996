"""The optimizer decides: pure functions from SQL text to priced plans and their SQL; no Spark, no Airflow, no files, no clock."""
