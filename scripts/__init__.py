"""What is run by hand, in a checkout."""
