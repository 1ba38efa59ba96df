"""One script for each tool; each can be run by hand, see `bench/zombies/stage.py`."""
