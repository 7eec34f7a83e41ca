"""A bulletin board that all see alike (`board`), and commitments on it (`commitment`)."""
