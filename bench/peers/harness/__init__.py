"""Installs, starts, measures and reports; one file a concern, `main.py` puts them together."""
