SELECT p.section, COUNT(*) AS pairs, MAX(b.amount) AS dearest
FROM views AS v [WINDOW 30 MINUTES], purchases AS b [WINDOW 10 MINUTES], pages AS p
WHERE v.user = b.user AND v.page = p.page
GROUP BY p.section
