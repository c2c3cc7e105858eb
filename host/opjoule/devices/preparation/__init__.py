"""A board brought into its measuring state, and back."""
