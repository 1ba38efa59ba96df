"""Plan files, and work imported from other tools.

    reading = files.read(text, "plan.yaml", now)      the plans of the file, and its findings
    apply.apply(client, reading.plans[0])             created in the store, all of it or nothing
    export.export(client, plan="shop")                the text of a plan file again
    graph_text.draw(client.dag(id), "mermaid")        its graph

A text becomes a tree of nodes with their positions (`yaml_trees`, `json_trees`), the tree becomes tasks and findings
(`fields`, `files`). `importers/` reads another tool's files into the same kind of plan. The rules of a task are core's;
this package adds line numbers.
May import `client` and the layers below. To add an importer: one module that returns items, a line in
`importers/registry.py`; or an entry point of another package.
"""
