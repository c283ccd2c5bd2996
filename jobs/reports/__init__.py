"""Data docs, and MLflow's copy of the ledger."""
