"""One module for each peer, named after it; run in the peers' venv, except `tenure`."""
