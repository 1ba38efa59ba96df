"""Plan files, and work that comes from other tools.

    reading = files.read(text, "plan.yaml", now)      what the file says, and all that is wrong with it
    applying.apply(client, reading.plans[0])          made in the store, whole or not at all
    exporting.export(client, plan="shop")             the text of a plan file again
    drawing.draw(client.dag(id), "mermaid")           its graph

A text becomes a tree of nodes that know their place (`yaml_trees`, `json_trees`), the tree becomes tasks and findings
(`fields`, `files`). An import (`beads`, `task_master`, `backlog_md`) reads another tool's files into items, and
`importing` makes the same kind of plan of them. The rules of a task are core's; here they only get a line number.
May import `client` and what is below. To add an import: one module that yields items, a verb in `cli/importing.py`.
"""
