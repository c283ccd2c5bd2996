"""Texts of several SELECTs."""
