"""Seeded bugs in whose word counts, and in how text of others is shown: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

# Single tests: those of whole clones start many processes.
_UNTRUSTED, _PRINTING = "tests/cli/test_untrusted.py::test_", "tests/cli/test_printing.py::test_"
SETTINGS = ("tests/cli/test_config.py::test_no_key_is_sent_to_a_server_that_only_the_repository_names",)
LINKS = (f"{_UNTRUSTED}a_folder_that_is_a_link_is_not_followed",)
OWN = (f"{_UNTRUSTED}ones_own_settings_count_without_a_word",)
STORES = (f"{_UNTRUSTED}a_cloned_store_is_neither_served_nor_given_to_agents",)
QUOTED_KEYS = (f"{_UNTRUSTED}a_quoted_key_is_no_way_around",)
STYLES = (f"{_PRINTING}styles_of_others_are_shown_and_not_sent",)
QUOTING = (f"{_PRINTING}a_quotation_cannot_end_itself",)
AUTHORS = (f"{_PRINTING}the_author_of_a_tasks_words_is_named",)
PRIVATE = ("tests/cli/test_private.py",)

TRUST = (
    Mutant(
        "trust: a cloned file's url is followed",
        "config.py",
        "self.sources[origin].check(self.environ)",
        "pass",
        SETTINGS,
    ),
    Mutant(
        "trust: a key of the environment goes where the tree says",
        "config.py",
        'if str(url.value).startswith(("http://", "https://")):',
        "if False:",
        SETTINGS,
    ),
    Mutant("trust: links are followed", "config.py", "                refuse_links(found)\n", "", LINKS),
    Mutant(
        "trust: init writes through a link",
        "agents/new_store.py",
        "    refuse_links(folder)\n",
        "",
        LINKS,
    ),
    Mutant(
        "trust: git's index is not looked at",
        "trust/ownership.py",
        "if is_tracked(path) else None",
        "if False else None",
        OWN,
    ),
    Mutant(
        "trust: a changed file keeps its answer",
        "trust/ownership.py",
        "if known.get(path) == mark:",
        "if path in known:",
        OWN,
    ),
    Mutant(
        "trust: a cloned store is served",
        "config.py",
        "    if why is not None:\n        from tenure.trust.grants import Trusted\n",
        "    if False:\n        from tenure.trust.grants import Trusted\n",
        STORES,
    ),
    Mutant(
        "trust: a quoted key passes for a path of tables",
        "config.py",
        """(f'"{key}"' if "." in key else key)""",
        "key",
        QUOTED_KEYS,
    ),
    Mutant(
        "printing: control characters are printed raw",
        "core/safe_text.py",
        'return _CONTROLS.sub(_escaped, text.replace("\\r\\n", "\\n"))',
        "return text",
        STYLES,
    ),
    Mutant(
        "printing: a description's lines pass for ours",
        "agents/quotations.py",
        "(MARK + line).rstrip()",
        "line",
        QUOTING,
    ),
    Mutant(
        "printing: the author is not named",
        "agents/quotations.py",
        'return f"written by {author}{edited}"',
        'return "written by somebody"',
        AUTHORS,
    ),
    Mutant(
        "files: transcripts are open to others",
        "agents/runner/transcripts.py",
        "make_private_folder(self.folder)",
        "os.makedirs(self.folder, mode=0o700, exist_ok=True)",
        PRIVATE,
    ),
)
