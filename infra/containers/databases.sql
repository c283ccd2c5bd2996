-- Run once, when the database server is made; `airflow` is there already.
CREATE DATABASE mlflow;
