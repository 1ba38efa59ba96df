"""Plan files, and work that comes from other tools.

    reading = files.read(text, "plan.yaml", now)      what the file says, and all that is wrong with it
    applying.apply(client, reading.plans[0])          made in the store, whole or not at all
    exporting.export(client, plan="shop")             the text of a plan file again
    drawing.draw(client.dag(id), "mermaid")           its graph

A text becomes a tree of nodes that know their place (`yaml_trees`, `json_trees`), the tree becomes tasks and findings
(`fields`, `files`). `importers/` reads another tool's files into the same kind of plan. The rules of a task are core's;
here they only get a line number.
May import `client` and what is below. To add an importer: one module that returns items, a line in
`importers/registry.py`; or an entry point of another package.
"""
