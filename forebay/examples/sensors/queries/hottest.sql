SELECT MAX(r.celsius) AS warmest, COUNT(*) AS readings FROM readings AS r [WINDOW 15 MINUTES]
