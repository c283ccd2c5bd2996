"""New input into streams and relations, once each: found, read, judged, landed, committed, registered."""
