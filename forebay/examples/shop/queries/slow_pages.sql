SELECT v.page, COUNT(*) AS views, AVG(v.ms) AS average_ms, MAX(v.ms) AS slowest_ms
FROM views AS v [WINDOW 1 HOUR SLIDE 30 MINUTES]
GROUP BY v.page
HAVING COUNT(*) > 5
