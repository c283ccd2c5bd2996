"""What must hold of rows and answers: kinds, values, what follows from schemas and queries, and the SQL that tells.

Nothing is read or run here.
"""
