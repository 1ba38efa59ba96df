"""`watch`: the full-screen live view.

`watch.py` runs it, `state.py` is changed by keys, `data.py` is read from the store, `view.py` draws with rich.
"""
