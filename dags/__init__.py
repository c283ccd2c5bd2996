"""When things run: each task calls one function of `jobs`; no logic and no heavy import here."""
