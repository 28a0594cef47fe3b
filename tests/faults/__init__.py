"""Faults put into the real gate from outside: kills, failing storage, power cuts. See docs/RELIABILITY.md."""
