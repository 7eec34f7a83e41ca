"""A curator's own file, randomized before it is passed on: the papers' centralized mode (001).

Here somebody has all records, and randomizes them before others see any. No agents, no network.
"""
