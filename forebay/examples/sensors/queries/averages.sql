SELECT r.sensor, AVG(r.celsius) AS average, MIN(r.celsius) AS coldest, MAX(r.celsius) AS warmest
FROM readings AS r [WINDOW 20 MINUTES TUMBLING]
GROUP BY r.sensor
