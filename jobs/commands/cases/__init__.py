"""`forebay test`: a pipeline held against rows and answers that a person wrote down."""
