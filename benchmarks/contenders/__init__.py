"""Estimators behind one interface: what is published, what was, and what others have."""
