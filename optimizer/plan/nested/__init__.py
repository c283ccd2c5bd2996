"""Plans of questions that one SELECT does not say."""
