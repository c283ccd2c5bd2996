"""What a boundary costs in given settings, beside other systems."""
