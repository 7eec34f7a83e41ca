"""Simulation: virtual time and injected faults around the very same agents and protocols."""
