SELECT a.sensor AS warm, b.sensor AS cold, COUNT(*) AS n
FROM readings AS a [WINDOW 5 MINUTES], readings AS b [WINDOW 5 MINUTES]
WHERE date_trunc('MINUTE', a.at) = date_trunc('MINUTE', b.at) AND a.celsius > b.celsius + 5
GROUP BY a.sensor, b.sensor
