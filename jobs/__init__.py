"""Jobs do: the only place that touches data; what to do was decided in `optimizer`."""
