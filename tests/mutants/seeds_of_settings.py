"""Seeded bugs in which files of settings count, what settings do, and in names and mail of agents."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FILES = "tests/cli/test_settings_files.py"
UNTRUSTED = "tests/cli/test_untrusted.py"
VERBS = "tests/cli/test_verbs.py"
WHO = "tests/cli/test_who_am_i.py"

SETTINGS = (
    Mutant(
        "settings: a file without a store does not count",
        "locations.py",
        "if os.path.isfile(path) and (has_store or not found):",
        "if os.path.isfile(path) and has_store:",
        f"{FILES}::test_every_reader_of_settings_reads_a_file_without_a_store",
    ),
    Mutant(
        "settings: a clone below hides the settings of the store",
        "locations.py",
        "(has_store or not found)",
        "not found",
        f"{FILES}::test_a_nearer_file_adds_to_the_stores_own_and_does_not_hide_it",
    ),
    Mutant(
        "settings: a cloned file without a store is the user's",
        "config.py",
        "if not self.risky or self.kind == NAMED:",
        "if not self.risky or self.kind == NAMED or not os.path.exists(os.path.join(self.root, FOLDER, DATABASE)):",
        f"{UNTRUSTED}::test_a_cloned_file_counts_no_more_without_a_database_beside_it[63]",
    ),
    Mutant(
        "settings: a path in a file depends on the working folder",
        "config.py",
        'if key in _PLACES and "://" not in value:',
        "if False:",
        f"{FILES}::test_a_path_in_a_file_is_the_same_wherever_the_command_runs",
    ),
    Mutant(
        "settings: TENURE_CONFIG names any file",
        "config.py",
        "        check_operators(path, status, environ)\n",
        "",
        f"{FILES}::test_roots_file_counts_unless_others_may_write_it",
    ),
    Mutant(
        "settings: TENURE_CONFIG names a file of a clone",
        "trust/operator_file.py",
        "tree = _work_tree(path) or _work_tree(real)",
        "tree = None",
        f"{FILES}::test_no_file_of_a_git_work_tree_counts_whoever_owns_it[folder]",
    ),
    Mutant(
        "settings: a link leads out of the clone, or into it",
        "trust/operator_file.py",
        "tree = _work_tree(path) or _work_tree(real)",
        "tree = _work_tree(real)",
        f"{FILES}::test_no_file_of_a_git_work_tree_counts_whoever_owns_it[file]",
    ),
    Mutant(
        "settings: others may write the operator's file",
        "trust/operator_file.py",
        "if mode & 0o022 else None",
        "if False else None",
        f"{FILES}::test_roots_file_counts_unless_others_may_write_it",
    ),
    Mutant(
        "settings: others may read the user's named file",
        "trust/operator_file.py",
        "return is_open if mode & 0o077 else None",
        "return None",
        f"{FILES}::test_a_file_below_ones_own_configuration_folder_counts_with_mode_0600",
    ),
    Mutant(
        "settings: the operator's key goes where the tree says",
        "config.py",
        "if key.value is None or self._is_in_tree(key) or not self._is_in_tree(url):",
        "if key.value is None or key.origin in self.sources or not self._is_in_tree(url):",
        f"{FILES}::test_its_key_goes_to_no_server_that_the_tree_names",
    ),
    Mutant(
        "settings: agents inherit the operator's file",
        "core/child_environments.py",
        '_PLACE = {"TENURE_URL", ',
        '_PLACE = {"TENURE_URL", "TENURE_CONFIG", ',
        f"{FILES}::test_children_do_not_inherit_it",
    ),
    Mutant(
        "settings: the owner's URL of another store migrates it",
        "stores/postgres/row_security.py",
        "yield other if other.all(_DATABASE, []) == connection.all(_DATABASE, []) else None",
        "yield other",
        "tests/cli/test_row_security.py::test_the_owners_url_of_one_store_is_not_used_for_another",
    ),
    Mutant(
        "settings: rls changes another store than the one here",
        "cli/row_security.py",
        "        row_security.check_owner(owner, named)\n",
        "        pass\n",
        "tests/cli/test_row_security.py::test_the_owners_url_of_one_store_is_not_used_for_another",
    ),
    Mutant(
        "settings: a place of artifacts keeps a store from being made",
        "cli/setup.py",
        "    run.home = home_at(url,",
        "    home_at(url,",
        f"{FILES}::test_a_store_is_made_where_artifacts_have_a_place_of_their_own[kept]",
    ),
    Mutant(
        "names: two plain terminals are one agent",
        "agents/identity.py",
        "    if who.agent_source == USER:\n",
        "    if False:\n",
        f"{WHO}::test_plain_terminals_are_agents_of_their_own_and_write_to_each_other",
    ),
    Mutant(
        "names: the session of a terminal that has ended keeps its name",
        "agents/identity.py",
        "return bool(known) and all(",
        "return False and all(",
        f"{WHO}::test_plain_terminals_are_agents_of_their_own_and_write_to_each_other",
    ),
    Mutant(
        "names: a name that is taken is not said",
        "engine/verbs/agents.py",
        "if one.id != cmd.session]",
        "if one.id == cmd.session]",
        "test_a_second_session_that_joins_with_a_live_name_is_told",
    ),
    Mutant(
        "names: a session that fell silent keeps its name",
        "engine/verbs/agents.py",
        "recent = Range(low=work.now - before.stale_after + 1)",
        "recent = Range(low=0)",
        "test_a_second_session_that_joins_with_a_live_name_is_told",
    ),
    Mutant(
        "mail: a leader writes to itself",
        "core/team.py",
        "if leader is None or leader == sender:",
        "if leader is None:",
        "test_the_leader_gets_its_mail_while_it_leads",
    ),
    Mutant(
        "mail: that nobody is reached is not said",
        "core/team.py",
        '    if to:\n        return f"sent to',
        '    if True:\n        return f"sent to',
        "test_mail_to_many_that_reaches_nobody_says_so",
    ),
    Mutant(
        "leading: a lease without the term is dropped without a word",
        "cli/team.py",
        "if given.lease is not None and given.term is None:",
        "if False:",
        f"{VERBS}::test_leading",
    ),
    Mutant(
        "leading: STALE_TERM names who leads now for an earlier term",
        "engine/verbs/lead.py",
        "        who = _led(work, leader, term)\n",
        "        who = leader.holder\n",
        "test_a_stale_term_is_explained_by_what_was",
    ),
    Mutant(
        "leading: the lease of the settings is not that of elections",
        "engine/verbs/lead.py",
        "agent, work.context.leader_lease, None",
        "agent, limits.AGENT_LEADER_LEASE, None",
        "test_a_shorter_lease_of_the_settings_is_that_of_elections_and_is_renewed",
    ),
    Mutant(
        "leading: a lease shorter than its renewals ends",
        "engine/verbs/lead.py",
        "min(WRITTEN, leader.lease // 3)",
        "WRITTEN",
        "test_a_shorter_lease_of_the_settings_is_that_of_elections_and_is_renewed",
    ),
    Mutant(
        "leading: the setting of an agent's lease is not read",
        "cli/main.py",
        ", leader_lease=leader_lease_of(self.settings),",
        ",",
        f"{VERBS}::test_the_lease_of_an_agents_leadership_is_a_setting",
    ),
    Mutant(
        "settings: a runner sends heartbeats as it likes",
        "agents/runner/slot.py",
        "            heartbeat=self.options.heartbeat,\n",
        "",
        f"{VERBS}::test_the_interval_of_heartbeats_is_a_setting_that_shows",
    ),
    Mutant(
        "settings: another user's store is passed over for the one above it",
        "config.py",
        "if folder is None else unreadable_of(nearer)",
        "if folder is None else None",
        "tests/cli/test_lost_store.py::test_another_users_store_is_not_passed_over_for_the_one_above_it",
    ),
    Mutant(
        "settings: a worker does not register its interval",
        "client/worker/worker.py",
        "            heartbeat=self.heartbeat,\n",
        "",
        "tests/client/test_worker.py::test_the_interval_of_a_workers_heartbeats_is_an_argument",
    ),
)
