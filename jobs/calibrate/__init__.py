"""Unit costs of this machine, by small pieces of work and by plans run for real."""
