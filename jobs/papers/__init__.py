"""What only reproduces the papers: operators, generator, experiments, benchmarks.

No pipeline depends on anything here.
"""
