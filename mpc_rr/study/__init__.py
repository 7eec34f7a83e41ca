"""A study: its definition, the file it is read from, and where records come from."""
