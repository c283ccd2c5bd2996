"""What plans cost, by the papers' models: statistics in, prices out; nothing here measures, chooses or runs anything."""
