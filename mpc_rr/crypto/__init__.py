"""Keys, signatures and sealing: published constructions from `cryptography`, nothing home-made."""
