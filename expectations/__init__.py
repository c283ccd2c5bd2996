"""What must hold of rows and of answers: named checks as values; running them is `jobs`."""
