"""Seeded bugs in what a process does while it leads: hooks that run twice or untrusted, notices lost or too many."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

HOOKS = "engine/relay/hook_reader.py"
NOTICES = "engine/relay/notice_reader.py"
READER = "engine/relay/reader.py"
RISKY = "trust/risky_settings.py"
SETTINGS = "sinks/settings.py"
SETTINGS_TEST = "tests/sinks/test_settings.py"
STANDING_BY = "tests/engine/test_standing_by.py::test_who_does_not_lead_does_not_wait_for_news"

LEADING = (
    Mutant(
        "hooks: the place moves after the commands",
        HOOKS,
        """        if not self.move(led, page.row, page.end, sent=len(page.events)):
            return True
        for event, facts in page.events:
            body = messages_of(event, facts)[0].body
            for argv in self._commands[event.kind]:
                self._runner.start(argv, body)
""",
        """        for event, facts in page.events:
            body = messages_of(event, facts)[0].body
            for argv in self._commands[event.kind]:
                self._runner.start(argv, body)
        if not self.move(led, page.row, page.end, sent=len(page.events)):
            return True
""",
        (
            "test_the_place_moves_before_a_hook_runs",
            "test_a_process_that_dies_as_a_hook_begins_does_not_run_it_again",
            "test_a_process_whose_term_is_over_runs_no_hook",
        ),
    ),
    Mutant(
        "hooks: the place moves without the term",
        READER,
        "return led.transact((), decide)",
        'return self.engine.transact(("",), decide)',
        "test_a_process_whose_term_is_over_runs_no_hook",
    ),
    Mutant(
        "hooks: run though they are paused",
        HOOKS,
        "page.row.paused_at is not None or page.end == page.row.sequence",
        "page.end == page.row.sequence",
        "test_hooks_that_are_paused_run_later",
    ),
    Mutant(
        "trust: hooks of a repository are not risky",
        RISKY,
        '"hooks.on_*", ',
        "",
        f"{SETTINGS_TEST}::test_nothing_of_a_repository_counts_before_it_is_trusted",
    ),
    Mutant(
        "trust: sinks of a repository are not risky",
        RISKY,
        '"sinks", "notify",',
        '"notify",',
        f"{SETTINGS_TEST}::test_nothing_of_a_repository_counts_before_it_is_trusted",
    ),
    Mutant(
        "trust: a password in a URL is shown",
        RISKY,
        "authority.rpartition('@')[2]",
        "authority",
        f"{SETTINGS_TEST}::test_nothing_of_a_repository_counts_before_it_is_trusted",
    ),
    Mutant(
        "settings: a shared file may have a secret",
        SETTINGS,
        "self._settings.is_shared(self._key(field)) and has_secret",
        "False",
        f"{SETTINGS_TEST}::test_a_shared_file_has_no_secret",
    ),
    Mutant(
        "notices: the place passes what waits",
        NOTICES,
        "return min((w.before for w in self._waiting.values() if w.at > now - HELD_BACK), default=self._read)",
        "return self._read",
        "test_a_new_leader_sends_what_waits_and_no_third_message",
    ),
    Mutant(
        "notices: a new leader begins the minute again",
        NOTICES,
        "is_recent = row.sent_at is not None and row.sent_at > now - notices.WINDOW",
        "is_recent = False",
        "test_a_new_leader_sends_what_waits_and_no_third_message",
    ),
    Mutant(
        "relay: a sink is not told of a rewind",
        "engine/relay/relay_verbs.py",
        "cut_off_at=None, identity=None)",
        "cut_off_at=None)",
        "test_a_sink_is_told_of_a_rewind_once_and_also_by_the_next_leader",
    ),
    Mutant(
        "standing by: a thread wakes again and again",
        "engine/relay/leader_thread.py",
        "if self._troubles or not self._is_led or self.is_busy():",
        "if self._troubles or self.is_busy():",
        STANDING_BY,
    ),
)
