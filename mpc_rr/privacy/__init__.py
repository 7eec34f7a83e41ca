"""What an answer discloses: events, odds, amplification by a crowd, and a ledger of all of it."""
