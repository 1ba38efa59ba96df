"""Seeded bugs in whose word counts, and in how text of others is shown."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_CONFIG = "tests/cli/test_config.py"
TEST_PRINTING = "tests/cli/test_printing.py"
TEST_UNTRUSTED = "tests/cli/test_untrusted.py"

# Single tests: those of whole clones start many processes.

TRUST = (
    Mutant(
        "trust: a cloned file's url is followed",
        "config.py",
        "self.sources[origin].check(self.environ)",
        "pass",
        f"{TEST_CONFIG}::test_no_key_is_sent_to_a_server_that_only_the_repository_names",
    ),
    Mutant(
        "trust: a key of the environment goes where the tree says",
        "config.py",
        'if str(url.value).startswith(("http://", "https://")):',
        "if False:",
        f"{TEST_CONFIG}::test_no_key_is_sent_to_a_server_that_only_the_repository_names",
    ),
    Mutant(
        "trust: links are followed",
        "locations.py",
        "            refuse_links(found)\n",
        "",
        f"{TEST_UNTRUSTED}::test_a_folder_that_is_a_link_is_not_followed",
    ),
    Mutant(
        "trust: init writes through a link",
        "agents/new_store.py",
        "    refuse_links(folder)\n",
        "",
        f"{TEST_UNTRUSTED}::test_a_folder_that_is_a_link_is_not_followed",
    ),
    Mutant(
        "trust: git's index is not checked",
        "trust/ownership.py",
        "if is_tracked(path) else None",
        "if False else None",
        f"{TEST_UNTRUSTED}::test_ones_own_settings_count_without_a_word",
    ),
    Mutant(
        "trust: a changed file keeps its answer",
        "trust/ownership.py",
        "if known.get(path) == mark:",
        "if path in known:",
        f"{TEST_UNTRUSTED}::test_ones_own_settings_count_without_a_word",
    ),
    Mutant(
        "trust: tasks of a cloned store go to an agent over MCP",
        "mcp/callers.py",
        "check_store(home, self.options.environ)",
        "pass",
        "tests/mcp/test_bad_input.py::test_the_tasks_of_a_store_that_came_with_a_repository_are_not_given_to_an_agent",
    ),
    Mutant(
        "trust: a cloned store is served",
        "trust/ownership.py",
        "    if why is not None:\n        from tenure.trust.grants import Trusted\n",
        "    if False:\n        from tenure.trust.grants import Trusted\n",
        f"{TEST_UNTRUSTED}::test_a_cloned_store_is_neither_served_nor_given_to_agents[18]",
    ),
    Mutant(
        "trust: a quoted key passes for a path of tables",
        "config.py",
        """(f'"{key}"' if "." in key else key)""",
        "key",
        f"{TEST_UNTRUSTED}::test_a_quoted_key_is_no_way_around",
    ),
    Mutant(
        "printing: control characters are printed raw",
        "core/safe_text.py",
        'return visible(_CONTROLS.sub(_escaped, text.replace("\\r\\n", "\\n")))',
        "return text",
        f"{TEST_PRINTING}::test_styles_of_others_are_shown_and_not_sent",
    ),
    Mutant(
        "printing: a description's lines pass for ours",
        "agents/quotations.py",
        "(MARK + line).rstrip()",
        "line",
        f"{TEST_PRINTING}::test_a_quotation_cannot_end_itself",
    ),
    Mutant(
        "printing: the author is not named",
        "agents/quotations.py",
        'return f"written by {author}{edited}"',
        'return "written by somebody"',
        f"{TEST_PRINTING}::test_the_author_of_a_tasks_words_is_named",
    ),
    Mutant(
        "files: transcripts are open to others",
        "agents/runner/attempt_files.py",
        "make_private_folder(self.folder)",
        "os.makedirs(self.folder, mode=0o700, exist_ok=True)",
        "tests/cli/test_private.py::test_no_file_that_we_write_is_open_to_others",
    ),
    Mutant(
        "what nobody sees reaches prompts, lists and terminals",
        "core/safe_text.py",
        "    places = _hidden(text)\n    if not places:\n        return text\n    parts",
        "    places: list[int] = []\n    if not places:\n        return text\n    parts",
        "tests/core/test_safe_text.py::test_what_nobody_sees_is_spelled_out",
    ),
    Mutant(
        "selectors of variants carry a message behind an emoji",
        "core/safe_text.py",
        '    if char in "\\ufe0e\\ufe0f":\n        return _is_emoji(before)',
        '    if char in "\\ufe0e\\ufe0f\\ufe01\\ufe02":\n        return True or _is_emoji(before)',
        "tests/core/test_safe_text.py::test_what_nobody_sees_is_spelled_out",
    ),
    Mutant(
        "replies to a model are sent as they were written",
        "mcp/replies.py",
        "whole = visible_value(dict(value)",
        "whole = dict(dict(value)",
        "tests/cli/test_printing.py::test_no_prompt_and_no_reply_to_a_model_has_what_nobody_sees",
    ),
    Mutant(
        "hooks pass on what nobody sees",
        "agents/dialects.py",
        "    text = neutral(text)\n",
        "",
        "tests/cli/test_printing.py::test_no_text_of_a_hook_has_what_nobody_sees",
    ),
)
