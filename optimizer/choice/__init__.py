"""Which plan: candidates searched, priced, decided, and explained."""
