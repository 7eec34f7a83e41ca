"""The result folder: what is in it, and how it is written, read and checked."""
