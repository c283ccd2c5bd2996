"""What people ask for, and which boundaries can run."""
