"""Seeded bugs in lists: what is left out without a word, or shown twice, or never reached."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

QUERY = "core/query.py"
TASKS = "engine/reads/tasks.py"
TEST_LISTS = "tests/engine/test_lists.py"
TEST_VERBS = "tests/cli/test_long_lists.py"

LISTS = (
    Mutant(
        "lists: a limit above the largest is asked for",
        QUERY,
        "not 1 <= (limit := _limit(query)) <= query.largest:",
        "not 1 <= (limit := _limit(query)):",
        f"{TEST_LISTS}::test_a_limit_that_no_answer_keeps_is_refused[Tasks-too many]",
    ),
    Mutant(
        "lists: one that stops does not say so",
        QUERY,
        "return Page(rows, more=True,",
        "return Page(rows, more=False,",
        f"{TEST_LISTS}::test_a_list_that_stops_says_so_and_a_whole_one_does_not[Ready]",
    ),
    Mutant(
        "lists: a whole one says that there are more",
        QUERY,
        "if len(found) <= limit:",
        "if len(found) < limit:",
        f"{TEST_LISTS}::test_a_list_that_stops_says_so_and_a_whole_one_does_not[Todo]",
    ),
    Mutant(
        "lists: no row more than the page has is asked for",
        "engine/reads/query_table.py",
        'options["limit"] += 1',
        'options["limit"] += 0',
        f"{TEST_LISTS}::test_a_list_that_stops_says_so_and_a_whole_one_does_not[Sessions]",
    ),
    Mutant(
        "lists: the next page begins behind the first row of this one",
        QUERY,
        "query.cursor(rows[-1])",
        "query.cursor(rows[0])",
        f"{TEST_LISTS}::test_the_next_of_each_page_leads_to_the_end[Tasks-2]",
    ),
    Mutant(
        "lists: the next page of budgets has none of another scope",
        "engine/budgets/budget_reads.py",
        "if after is not None and kind == passed else None",
        "if after is not None else None",
        f"{TEST_LISTS}::test_the_next_of_each_page_leads_to_the_end[Budgets-1]",
    ),
    Mutant(
        "lists: a search that stops looks whole",
        TASKS,
        "return Page(_only(fields, order, found), more=True, next=after)",
        "return _only(fields, order, found)",
        f"{TEST_LISTS}::test_a_search_that_stops_says_where_to_search_on",
    ),
    Mutant(
        "lists: a session's memory that stops looks whole",
        TASKS,
        '"more": len(events) > MOST_LISTED,',
        '"more": False,',
        f"{TEST_LISTS}::test_a_session_says_that_older_entries_are_left_out",
    ),
    Mutant(
        "lists: only the first page of rows is read",
        "engine/runtime/rows.py",
        '        after = (getattr(page[-1], order.lstrip("-")), page[-1].id)\n',
        "        return\n",
        f"{TEST_LISTS}::test_mail_to_many_fills_the_page_with_messages_not_with_recipients",
    ),
    Mutant(
        "lists: a verb for many tasks stops after a page",
        "cli/task_reads.py",
        "    while page.next is not None:",
        "    while False:",
        f"{TEST_VERBS}::test_a_verb_for_many_tasks_reaches_all_of_them",
    ),
    Mutant(
        "lists: a command is looked for in the first page of the mail",
        "client/worker/mail_commands.py",
        "        while page.next is not None:",
        "        while False:",
        "tests/sinks/test_worker_source.py::test_a_command_among_much_mail_is_found_and_still_taken_once",
    ),
    Mutant(
        "lists: nothing is said beside --json",
        "cli/answers.py",
        "        run.warn(answer.left_out)\n",
        "        pass\n",
        f"{TEST_VERBS}::test_every_list_says_so_beside_json_too",
    ),
    Mutant(
        "lists: a server's answer that stops looks whole",
        "client/transports/http_messages.py",
        'return Page(found, more=last["more"],',
        "return Page(found, more=False,",
        "tests/client/test_remote.py::test_long_lists_are_fetched_page_by_page",
    ),
)
