SELECT COUNT(*) AS purchases, COUNT(DISTINCT b.user) AS buyers, SUM(b.amount) AS revenue
FROM purchases AS b [WINDOW UNTIL NOW]
