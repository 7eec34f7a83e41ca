"""The mathematics: numpy and scipy only, no network and no cryptography."""
