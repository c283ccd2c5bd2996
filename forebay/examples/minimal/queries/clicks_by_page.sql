SELECT c.page, COUNT(*) AS n FROM clicks AS c [WINDOW 5 MINUTES] GROUP BY c.page
