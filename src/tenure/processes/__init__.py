"""Child processes that leave nothing behind: the one supervisor of agents, of test commands and of output checkers.

`supervisor.py` is the caller's end: it starts a command with its limits, reads its output and ends it.
`supervisor_script.py` is the process above the command; it kills the whole tree, however the tree forks and also where
the caller is killed. `output.py` bounds the output that is kept; `bounded_run.py` runs one command to its end;
`detached.py` starts one that outlives its caller. May import core, and the script nothing of ours.

How the tree is found. The script is a subreaper: an orphan below it becomes its child, so a double fork or a new
session hides nothing, and "no child is left" proves that no descendant is. Killing repeats until that is proven. Whole
process groups are stopped before anything is killed: a group gets a signal at once, including forks in progress, and a
stopped storm cannot use the room that a kill makes.

How it survives its own death. The script forks before it starts the command. The parent only watches: where the child
is killed, the parent inherits the tree and kills it. The child sees the parent's death by a closed pipe, and kills the
tree too. The kernel kills the command itself (PDEATHSIG) where both are killed at the same instant.

Elsewhere than on Linux there is no subreaper: only the command's process group is ended.
"""
