"""The one file that Airflow parses: it hands over the DAGs of every pipeline folder that FOREBAY_PIPELINES names, and
does nothing else.
"""
from dags.factory import every

globals().update({dag.dag_id: dag for dag in every()})
