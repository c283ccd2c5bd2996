"""What must hold of rows and answers: kinds, values, what follows from schemas and queries, and the SQL that tells; nothing is read or run here."""
