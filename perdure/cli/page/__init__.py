"""The style and the script of exported pages."""
