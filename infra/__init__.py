"""How Forebay is installed and run; nothing here is imported while batches run."""
