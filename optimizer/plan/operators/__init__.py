"""The statements of a plan's parts: sets, joins, ways of keeping, windows."""
