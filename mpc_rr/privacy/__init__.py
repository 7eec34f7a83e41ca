"""What an answer gives away: odds, amplification by a crowd, and a ledger of releases."""
