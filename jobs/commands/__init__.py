"""What a schedule or a person calls: one function a command."""
