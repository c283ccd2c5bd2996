"""`forebay bench model-error`: what prices say of a plan, and what it takes as users run it."""
