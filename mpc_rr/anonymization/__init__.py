"""Anonymizing records: groups of k, what is released of them, masks, and what each still tells."""
