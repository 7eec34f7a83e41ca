"""The protocols side by side on records that one holds: the papers' experiments on any data."""
