"""`doctor`: one function a check, in the module of its theme; `doctor.py` has the list.

To add one: a function that yields findings, each with a fix, and its line in `doctor.py`.
"""
