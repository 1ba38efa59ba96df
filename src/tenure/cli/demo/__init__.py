"""`demo`: a team of processes, a kill, a hand-over, a refused zombie.

`verb.py` tells the story, `stage.py` draws it, `agent.py` is one scripted agent.
"""
