SELECT a.sensor AS warm, b.sensor AS cold, COUNT(*) AS n
FROM readings AS a [WINDOW 5 MINUTES], readings AS b [WINDOW 5 MINUTES]
WHERE a.at = b.at AND a.celsius > b.celsius + 5
GROUP BY a.sensor, b.sensor
