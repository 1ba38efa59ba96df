"""`watch`: the full-screen live view.

`watch.py` runs it, `state.py` is what keys change, `data.py` what is read, `view.py` draws: the only user of rich.
"""
