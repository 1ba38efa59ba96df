// The colour of an event in a list, by its kind.
const GOOD = new Set(["task.completed", "dag.completed", "task.adopted", "agent.recovered", "budget.alert_ended"]);
const BAD = new Set([
  "task.dead_lettered", "dag.failed", "task.failed", "agent.terminated", "schedule.failed", "trigger.failed",
  "sink.behind", "webhook.disabled", "spawn.lost",
]);
const ODD = new Set([
  "task.lease_expired", "task.process_gone", "task.result_refused", "task.aborted", "task.warned", "task.question",
  "task.deadline_missed", "agent.stale", "project.stopped", "task.epoch_ended", "task.recovered", "task.reassigned",
  "task.output_refused", "task.validation_undecided", "budget.alert", "schedule.missed", "trigger.held_back",
  "sink.gap", "sink.forgot", "webhook.paused", "pool.paused",
]);
const WORK = new Set(["spawn.starting", "spawn.running", "task.claimed", "task.started", "task.progress", "task.checkpoint", "task.landing"]);

export function toneOf(kind) {
  if (GOOD.has(kind)) return "good";
  if (BAD.has(kind)) return "bad";
  if (ODD.has(kind)) return "odd";
  return WORK.has(kind) ? "work" : "plain";
}
