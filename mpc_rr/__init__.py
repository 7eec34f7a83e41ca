"""Statistics on private data without a trusted collector."""
