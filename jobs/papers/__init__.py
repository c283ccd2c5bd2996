"""What only reproduces the papers: operators, generator, experiments, benchmarks; no pipeline depends on anything here."""
