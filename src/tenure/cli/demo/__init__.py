"""`demo`: a team of processes, a kill, a hand-over, a refused zombie.

`demo.py` runs the story, `stage.py` draws it, `agent.py` is one scripted agent.
"""
