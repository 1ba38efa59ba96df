"""Seeded bugs in the copies of an embedded store outside of its folder, and in what is said of a store that is gone."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_RULE = "tests/core/test_store_copies.py"
TEST_COPIES = "tests/agents/test_store_copies.py"
TEST_LOST = "tests/cli/test_lost_store.py"
RULE, PART, FOLDER = "core/store_copies.py", "agents/store_copies.py", "store_folder.py"

COPIES = (
    Mutant(
        "copies: one is made though nothing was written",
        RULE,
        "newest.sequence != last and not 0 <=",
        "not 0 <=",
        f"{TEST_COPIES}::test_a_store_is_copied_at_the_start_and_end_and_now_and_then_while_it_is_written",
    ),
    Mutant(
        "copies: a clock that was ahead delays them",
        RULE,
        "not 0 <= now - newest.made < least",
        "now - newest.made >= least",
        f"{TEST_RULE}::test_when_a_copy_is_due",
    ),
    Mutant(
        "copies: a new store drives out the last copy of the former one",
        RULE,
        "    present = [copy for copy in newest_first if copy.epoch == epoch]",
        "    present = newest_first",
        (
            f"{TEST_RULE}::test_the_newest_copies_are_kept_and_the_last_of_earlier_epochs",
            f"{TEST_COPIES}::test_a_new_store_at_the_path_of_a_former_one_keeps_its_last_copy",
        ),
    ),
    Mutant(
        "copies: those of all stores have no bound",
        PART,
        "        for gone in beyond(all_copies(self._environ), made):\n            _delete(gone)\n",
        "",
        f"{TEST_COPIES}::test_copies_of_all_stores_have_a_bound",
    ),
    Mutant(
        "copies: those of one store have no bound",
        PART,
        "        for gone in surplus(copies_at(path, self._environ), epoch):\n            _delete(gone)\n",
        "",
        f"{TEST_COPIES}::test_few_copies_are_kept",
    ),
    Mutant(
        "copies: a store of any size is copied",
        PART,
        "        if size > limits.COPY_LARGEST:",
        "        if False:",
        f"{TEST_COPIES}::test_a_store_that_is_too_large_is_said_once",
    ),
    Mutant(
        "copies: a damaged store is copied over sound ones",
        PART,
        "            if wrong:",
        "            if False:",
        f"{TEST_COPIES}::test_a_damaged_store_drives_out_no_copy",
    ),
    Mutant(
        "copies: a copy that fails is said each time",
        PART,
        "        if text != self._said:",
        "        if True:",
        f"{TEST_COPIES}::test_a_full_disk_is_one_line_and_costs_no_earlier_copy",
    ),
    Mutant(
        "copies: a process that does not lead makes one at its end",
        PART,
        "            if self.leading() is not None:",
        "            if True:",
        f"{TEST_COPIES}::test_who_does_not_lead_makes_none",
    ),
    Mutant(
        "copies: those of a folder that was moved stay at its former path",
        PART,
        "            moved_here(known, self._environ)\n",
        "",
        f"{TEST_COPIES}::test_a_folder_that_is_moved_takes_its_copies_along",
    ),
    Mutant(
        "copies: a folder that was copied takes the copies of the first along",
        FOLDER,
        " or before.path == known.path or os.path.lexists(before.path):",
        " or before.path == known.path:",
        f"{TEST_COPIES}::test_a_store_with_a_second_name_keeps_its_copies",
    ),
    Mutant(
        "lost store: init says nothing of the one that was here",
        "cli/setup.py",
        "    if lost is not None:\n        value[",
        "    if False:\n        value[",
        f"{TEST_LOST}::test_init_says_that_the_store_it_makes_is_not_the_one_that_was_here",
    ),
    Mutant(
        "lost store: nobody says that it was here",
        FOLDER,
        "    return unread or next(filter(None, (lost_at(path, environ) for path in paths)), None)",
        "    return unread",
        f"{TEST_LOST}::test_every_verb_says_that_a_store_was_here_and_how_to_get_it_back",
    ),
    Mutant(
        "lost store: the folder of another user is a bug",
        "locations.py",
        "    except PermissionError as error:\n",
        "    except NotADirectoryError as error:\n",
        f"{TEST_LOST}::test_another_users_store_belongs_to_them_and_is_no_bug",
    ),
)
