"""Seeded bugs in the sealed log, its check, its presets and signatures."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CHECK = "core/seal_check.py"
SEALS = "core/log_seals.py"
SEALER = "engine/audit/sealer.py"
MOVER = "engine/archive/mover.py"
COMPLIANCE = "core/compliance.py"
SIGNED = "core/signed_log.py"
LINES = "core/audit_lines.py"

TEST_CHECK = "tests/core/test_seal_check.py"
TEST_FILE = "tests/client/test_audit_file.py"
FORGED = f"{TEST_FILE}::test_a_forgery_is_found_although_its_digest_was_computed_again"
TEST_SEALS = "tests/core/test_log_seals.py"
TEST_COPIED = "tests/engine/test_copied_seals.py"
TEST_PRESETS = "tests/core/test_compliance.py"
TEST_SIGNING = "tests/client/test_signing.py"

ROWS = "tests/stores/test_postgres_row_security.py"
DROPS = "stores/postgres/migrations/0021_guarded_log.sql"
UNSEALED = f"{ROWS}::test_events_that_no_seal_covers_are_not_dropped_from_a_sealed_log"

SEALED_LOG = (
    Mutant(
        "seals: a project whose mark was taken off is passed over",
        "engine/audit/audit_verbs.py",
        ' and not work.find(Seal, {"project": name} if name else {}, limit=1):\n',
        ":\n",
        "test_a_mark_that_was_taken_off_is_found",
    ),
    # --- under the role of the application
    Mutant(
        "seals: PostgreSQL drops an event that no seal covers",
        DROPS,
        "AND e.sequence + 0 BETWEEN v_sealed + 1 AND v_last - 1)",
        "AND false)",
        f"{UNSEALED}[event]",
    ),
    Mutant(
        "seals: PostgreSQL drops an event of a block that no seal covers",
        DROPS,
        "WHERE g.at BETWEEN v_sealed + 1 AND v_last - 1)",
        "WHERE false)",
        f"{UNSEALED}[block]",
    ),
    Mutant(
        "seals: a project whose mark was taken off is not sealed",
        DROPS,
        "    v_sealed bigint := (SELECT s.last FROM seal AS s WHERE s.tenant = p_tenant AND s.project = p_project\n",
        "    v_sealed bigint := (SELECT s.last FROM seal AS s JOIN project AS p ON p.tenant = s.tenant\n"
        "            AND p.id = s.project AND p.audited_at > 0 WHERE s.tenant = p_tenant AND s.project = p_project\n",
        f"{UNSEALED}[event]",
    ),
    Mutant(
        "seals: the role may rewrite a seal",
        "stores/postgres/row_security.py",
        'APPENDED = frozenset({"event", "event_block", "seal", "pruned_leaves"})',
        'APPENDED = frozenset({"event", "event_block", "pruned_leaves"})',
        f"{ROWS}::test_the_role_may_not[UPDATE {{0}}.seal SET head = '']",
    ),
    Mutant(
        "rows: a right on some columns is not seen",
        "stores/postgres/row_security.py",
        "(of_table or of_columns.get(kind))",
        "of_table",
        f"{ROWS}::test_check_names_what_is_wrong[changing a seal]",
    ),
    Mutant(
        "seals: what a viewer asks writes seals",
        "engine/reads/query_table.py",
        " and roles.seals_log(principal)",
        "",
        "test_a_viewer_reads_the_seals_that_there_are_and_writes_none",
    ),
    # --- leaves
    Mutant(
        "seals: a level that is equal to its default is in the leaf",
        SEALS,
        "        if values[n] == default:\n",
        "        if values[n] is default:\n",
        f"{TEST_SEALS}::test_the_leaf_is_the_documented_form",
    ),
    # --- sealing
    Mutant(
        "seals: events that are not sealed are archived",
        "engine/archive/log_readers.py",
        "    if sealed is not None:\n",
        "    if False:\n",
        "test_only_sealed_events_are_archived",
    ),
    Mutant(
        "seals: what was archived before the audit is deleted before it is sealed",
        MOVER,
        "    if sealed == 0:\n",
        "    if False:\n",
        "test_what_was_archived_before_the_audit_is_sealed_first",
    ),
    Mutant(
        "seals: what retention deletes leaves nothing",
        MOVER,
        '        leaves = b"" if sealed is None else b"".join(map(_leaves_of, going.values()))',
        '        leaves = b""',
        "test_what_retention_has_deleted_is_told_from_what_was_removed",
    ),
    Mutant(
        "seals: a document that is archived has no digest in the log",
        MOVER,
        '            details["documents"] = {id: documents[id] for id in tasks}',
        "            pass",
        "test_only_sealed_events_are_archived",
    ),
    Mutant(
        "seals: two sealers seal the same events",
        SEALER,
        "        if last != before:\n            return False\n",
        "",
        "test_of_two_sealers_at_once_one_seal_counts",
    ),
    Mutant(
        "seals: events that commit late are passed",
        SEALER,
        "    return engine.read(ask, follows=True)",
        "    return engine.read(ask)",
        "tests/stores/test_postgres_sharing.py::test_no_seal_passes_an_event_that_is_committed_late",
    ),
    Mutant(
        "seals: the log of the store is not sealed",
        SEALER,
        "    return any(row.audited_at and project in (STORE, row.id) for row in rows)",
        "    return any(row.audited_at and project == row.id for row in rows)",
        "test_events_that_belong_to_no_project_are_sealed_apart",
    ),
    Mutant(
        "seals: the archive of the command line seals nothing first",
        "client/client.py",
        "        seal_all(engine, self.project)\n",
        "",
        "tests/cli/test_audit.py::test_the_archive_seals_what_it_moves",
    ),
    Mutant(
        "seals: the leader waits for ten seconds, whatever comes",
        SEALER,
        " or end - place >= IN_SEAL):",
        "):",
        "test_the_leader_seals_many_events_at_once_however_young",
    ),
    Mutant(
        "seals: the leader seals an event at once",
        SEALER,
        "first[0].time <= now - AFTER",
        "first[0].time <= now",
        "test_the_leader_seals_events_that_are_ten_seconds_old",
    ),
    Mutant(
        "seals: an admin may turn them on",
        "core/commands/operator_commands.py",
        'Declaration("audit", "owner", "POST", PROJECT + "/audit")',
        'Declaration("audit", "admin", "POST", PROJECT + "/audit")',
        "test_nothing_is_sealed_in_a_project_that_nobody_has_turned_on",
    ),
    Mutant(
        "seals: a copy goes on as if its sequences were those of its source",
        "engine/project_copy.py",
        "        join_copy(work, seal.project, here[seal.last])",
        "        pass",
        f"{TEST_COPIED}::test_old_seals_are_evidence_and_the_new_chain_goes_on[memory-sqlite]",
    ),
    # --- leaves
    Mutant(
        "leaves: without the project",
        SEALS,
        '_NAMES = sorted(name for name in Event.__struct_fields__ if name != "sequence")',
        '_NAMES = sorted(name for name in Event.__struct_fields__ if name not in ("sequence", "project"))',
        f"{TEST_COPIED}::test_a_leaf_has_no_sequence_and_everything_else",
    ),
    Mutant(
        "leaves: with the sequence",
        SEALS,
        '_NAMES = sorted(name for name in Event.__struct_fields__ if name != "sequence")',
        "_NAMES = sorted(Event.__struct_fields__)",
        f"{TEST_COPIED}::test_a_leaf_has_no_sequence_and_everything_else",
    ),
    Mutant(
        "leaves: in another form than when they were new",
        SEALS,
        'b"tenure.event.v1\\0"',
        'b"tenure.event.v2\\0"',
        f"{TEST_SEALS}::test_a_log_that_an_older_version_sealed_verifies[sealed_1]",
    ),
    Mutant(
        "leaves: a document without its columns",
        SEALS,
        "_DOCUMENT + _encode(fields)",
        "_DOCUMENT",
        "test_an_edited_document_of_the_archive_is_found",
    ),
    Mutant(
        "seals: the head leaves the time out",
        SEALS,
        "seal.count, seal.sealed_at, *digests]",
        "seal.count, *digests]",
        "test_a_changed_or_removed_seal_is_found",
    ),
    # --- the check
    Mutant(
        "seal check: the previous head is not checked",
        CHECK,
        "        if seal.previous != head:\n",
        "        if False:\n",
        f"{TEST_CHECK}::test_a_seal_that_was_computed_again_does_not_fit_the_next_one",
    ),
    Mutant(
        "seal check: a head is not compared with the content",
        CHECK,
        "        if head_of(seal) != seal.head or not is_whole:",
        "        if not is_whole:",
        "test_a_changed_or_removed_seal_is_found",
    ),
    Mutant(
        "seal check: missing seals are passed over",
        CHECK,
        "        if seal.number > number:\n",
        "        if False:\n",
        f"{TEST_CHECK}::test_seals_that_are_missing_swapped_or_strange_are_found",
    ),
    Mutant(
        "seal check: a given head is not compared",
        CHECK,
        "            self._compare(expected)\n",
        "            pass\n",
        "test_a_log_that_was_cut_off_is_found_with_a_head_from_elsewhere",
    ),
    Mutant(
        "seal check: a removed event is not named",
        CHECK,
        '                    self._find(f"event {one.sequences[n]}: removed (seal {one.seal.number})")',
        "                    pass",
        "test_a_removed_event_is_found",
    ),
    Mutant(
        "seal check: an event that was put in is taken as younger",
        CHECK,
        '            self._find(f"event {event.sequence}: put in ({_about(event)})")',
        "            pass",
        f"{TEST_CHECK}::test_each_change_is_named_by_its_sequence",
    ),
    Mutant(
        "seal check: an edited document is not found",
        CHECK,
        "        elif not row.out and not self._is_document(row.id, inside):",
        "        elif False:",
        "test_an_edited_document_of_the_archive_is_found",
    ),
    Mutant(
        "seal check: whatever is said to be deleted by retention is believed",
        CHECK,
        "        if event is None:\n",
        "        if event is None and row.leaves:\n            self._pruned.update(leaves_in(row.leaves))\n"
        "        elif event is None:\n",
        "test_what_retention_has_deleted_is_told_from_what_was_removed",
    ),
    Mutant(
        "seal check: the leaves of deleted events are not compared with their event",
        CHECK,
        '        elif event.details.get("leaves") != pruned_digest(row.leaves) or event.time != row.at:',
        "        elif False:",
        "test_what_retention_has_deleted_is_told_from_what_was_removed",
    ),
    Mutant(
        "seal check: the order of a copied log is not checked",
        CHECK,
        "            if turn <= self._order:",
        "            if False:",
        f"{TEST_COPIED}::test_a_change_in_the_copy_is_found",
    ),
    Mutant(
        "seal check: signatures are not compared",
        SIGNED,
        "            elif not self._is_signed(key, value, covered):",
        "            elif False:",
        f"{TEST_CHECK}::test_a_forged_result_has_the_wrong_signature_too",
    ),
    Mutant(
        "attestation: any signature will do",
        "core/attestation.py",
        "    if not good:\n",
        "    if False:\n",
        "tests/cli/test_audit.py::test_an_attestation_is_a_head_that_the_server_has_signed",
    ),
    # --- presets
    Mutant(
        "presets: an admin may lower retention",
        COMPLIANCE,
        '    if found and role != "owner":',
        "    if False:",
        "test_a_preset_raises_retention_and_only_an_owner_lowers_it",
    ),
    Mutant(
        "presets: the shorter retention holds",
        COMPLIANCE,
        "    return max(least if own is None else own, tier or 0)",
        "    return min(least if own is None else own, tier or 1 << 30)",
        f"{TEST_PRESETS}::test_the_longer_retention_holds[soc2-None-90-365]",
    ),
    Mutant(
        "presets: the access log is kept by its setting alone",
        COMPLIANCE,
        "    return setting and max([setting, *(DAYS[name] for name in presets if name in DAYS)])",
        "    return setting",
        "tests/server/observability/test_access_log.py::test_a_preset_of_a_project_keeps_old_files_longer",
    ),
    # --- the lines of an export
    Mutant(
        "export: a line need not be in its canonical form",
        LINES,
        '        elif text != canonical + b"\\n":',
        "        elif False:",
        (f"{FORGED}[a field twice, a forged one first]", f"{FORGED}[spaces]"),
    ),
    Mutant(
        "export: unknown fields are passed over",
        LINES,
        "        if unknown:\n",
        "        if False:\n",
        f"{TEST_FILE}::test_a_forgery_of_a_former_file_is_found[a field put beside an event]",
    ),
    Mutant(
        "export: lines may be there twice, or swapped",
        LINES,
        "            if place <= self._last[part]:",
        "            if False:",
        (f"{FORGED}[an event twice]", f"{FORGED}[two documents swapped]"),
    ),
    Mutant(
        "export: the event of a deletion may say something else the second time",
        LINES,
        "        if self._deletions.get(event.sequence) != event:",
        "        if False:",
        f"{FORGED}[the event of a deletion, the second time]",
    ),
    Mutant(
        "export: leaves of a deletion need no event before them",
        LINES,
        "        if named != given:",
        "        if False:",
        f"{FORGED}[the event of a deletion removed]",
    ),
    Mutant(
        "export: a large value may stand anywhere",
        LINES,
        "        if row.id not in self._named:",
        "        if False:",
        f"{FORGED}[a large value twice]",
    ),
    Mutant(
        "export: the digest of a file is not compared",
        LINES,
        "        if self.digest != digest:",
        "        if False:",
        f"{TEST_FILE}::test_the_header_is_proved_by_the_digest_alone",
    ),
    Mutant(
        "export: a file may end anywhere",
        LINES,
        "        if self.digest is None and not self.is_former:",
        "        if False:",
        f"{TEST_FILE}::test_a_file_without_its_end_was_cut_off",
    ),
    Mutant(
        "seal check: the id of a seal is not compared",
        CHECK,
        "        if seal.id != seal_id(seal.number):",
        "        if False:",
        f"{FORGED}[the id of a seal]",
    ),
    Mutant(
        "seal check: the size of a document is not compared",
        CHECK,
        "        if row.size != len(archive.inflated(row.document)) or row.events != len(events):",
        "        if False:",
        f"{FORGED}[the size of a document]",
    ),
    Mutant(
        "seal check: any document may be marked as brought back",
        CHECK,
        "        if row.out and row.id not in self._returned:",
        "        if False:",
        f"{FORGED}[a document marked as brought back]",
    ),
    Mutant(
        "seal check: a large value may have any content",
        CHECK,
        "        if hashlib.sha256(content).hexdigest() != name:",
        "        if False:",
        f"{TEST_FILE}::test_150_random_changes_are_found_although_the_digest_was_computed_again",
    ),
    Mutant(
        "attestation: of any tenant",
        "core/attestation.py",
        "    if tenant is not None and of_tenant != tenant:",
        "    if False:",
        "tests/cli/test_audit.py::test_the_same_over_http",
    ),
    # --- signatures
    Mutant(
        "signatures: a key of small order may be registered",
        "core/signed_results.py",
        "    if height % _PRIME in _SMALL:",
        "    if height in (0, 1):",
        "tests/sealing/test_weak_keys.py::test_a_key_of_small_order_is_refused_however_it_is_written",
    ),
    Mutant(
        "signatures: a key may be written in another way",
        "core/signed_results.py",
        "    if height >= _PRIME:",
        "    if False:",
        "tests/sealing/test_weak_keys.py::test_a_point_that_is_written_in_another_way_is_refused",
    ),
    Mutant(
        "signatures: a stored weak key signs",
        "engine/checks/signatures.py",
        "    if weakness:",
        "    if False:",
        "test_a_weak_key_is_refused_and_one_that_is_stored_signs_nothing",
    ),
    Mutant(
        "signatures: a weak key verifies, as of an attestation",
        "sealing/signing.py",
        "    if weakness_of(public_key):",
        "    if False:",
        "tests/sealing/test_weak_keys.py::test_the_library_accepts_one_signature_of_such_a_key_for_every_text",
    ),
    Mutant(
        "doctor: a stored weak key is passed over",
        "cli/doctor/team_checks.py",
        "        weakness = weakness_of(key)\n",
        '        weakness = ""\n',
        "tests/cli/test_doctor.py::test_a_stored_key_that_signs_nothing_is_found",
    ),
    Mutant(
        "signatures: results in a batch are not signed",
        "client/client.py",
        "            return self._steps(self._signed_batch(batch, self.signing_key, self.transport.run))",
        "            return self.transport.run(batch, self.principal)",
        f"{TEST_SIGNING}::test_results_in_a_batch_are_signed",
    ),
    Mutant(
        "signatures: MCP over stdio does not sign",
        "mcp/callers.py",
        "            if client.signing_key is None:  # `join --key` may come at any time",
        "            if False:",
        "tests/mcp/test_stdio.py::test_a_session_with_a_key_signs_what_it_submits_by_mcp",
    ),
    Mutant(
        "seals: documents of the archive that were sealed before are sealed again",
        SEALER,
        "return [pair for pair in _leaves_of(tx, project) if pair[1] not in known]",
        "return [*_leaves_of(tx, project)]",
        "test_what_one_sealer_left_of_the_archive_another_seals_and_no_document_twice",
    ),
)
