"""The verbs and queries of schedules, triggers and the watch, which create tasks by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.client.queries import Queries
from tenure.client.results import Changed
from tenure.client.times import seconds_of
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Template
from tenure.core.records import Watch

if TYPE_CHECKING:
    from tenure.client.times import Duration
    from tenure.core.views import ScheduleInFull, ScheduleView, TriggerInFull, TriggerView, WatchedView


class Sources(Queries):
    # --- schedules ---

    def set_schedule(
        self,
        name: str,
        cron: str,
        tasks: Iterable[NewTask] | NewTask,
        *,
        zone: str = "UTC",
        misfire: str = "once",
        title: str = "",
        deadline_in: Duration | None = None,
    ) -> Changed:
        """Create or replace a schedule. Texts of the tasks may have placeholders such as `{tick.date}`."""
        return self._do(
            Changed,
            c.SetSchedule,
            schedule=name,
            cron=cron,
            zone=zone,
            misfire=misfire,
            template=_template(tasks, title, deadline_in),
        )

    def pause_schedule(self, name: str, reason: str = "") -> Changed:
        """Pause a schedule: it creates no tasks."""
        return self._do(Changed, c.PauseSchedule, schedule=name, reason=reason)

    def resume_schedule(self, name: str) -> Changed:
        """Continue a schedule with its next tick."""
        return self._do(Changed, c.ResumeSchedule, schedule=name)

    def remove_schedule(self, name: str) -> Changed:
        """Remove a schedule; its tasks stay."""
        return self._do(Changed, c.RemoveSchedule, schedule=name)

    def run_schedule(self, name: str) -> Changed:
        """Create its tasks now, in addition to its ticks."""
        return self._do(Changed, c.RunSchedule, schedule=name)

    def schedules(self) -> list[ScheduleView]:
        """The schedules, by name."""
        return self._ask(q.Schedules(project=self.project))

    def schedule(self, name: str, ticks: int = 5) -> ScheduleInFull:
        """One schedule with its template, and its next ticks."""
        return self._ask(q.ShowSchedule(project=self.project, schedule=name, ticks=ticks))

    # --- triggers ---

    def set_trigger(
        self,
        name: str,
        on: str,
        tasks: Iterable[NewTask] | NewTask,
        *,
        where: Mapping[str, Any] | None = None,
        most: int = 100,
        signature: str = "standard",
        secret: str | None = None,
        title: str = "",
        deadline_in: Duration | None = None,
    ) -> Changed:
        """Create or replace a trigger. Texts of the tasks may have placeholders such as `{event.key}`.

        `on` is a kind of event, a pattern such as `dag.*`, or `webhook`: then this outcome alone has its secret.
        """
        return self._do(
            Changed,
            c.SetTrigger,
            trigger=name,
            on=on,
            where=dict(where or {}),
            most=most,
            signature=signature,
            secret=secret,
            template=_template(tasks, title, deadline_in),
        )

    def pause_trigger(self, name: str) -> Changed:
        """Pause a trigger: it creates no tasks."""
        return self._do(Changed, c.PauseTrigger, trigger=name)

    def resume_trigger(self, name: str) -> Changed:
        """Continue a trigger with the next event."""
        return self._do(Changed, c.ResumeTrigger, trigger=name)

    def remove_trigger(self, name: str) -> Changed:
        """Remove a trigger; its tasks stay."""
        return self._do(Changed, c.RemoveTrigger, trigger=name)

    def rotate_secret(self, name: str, secret: str | None = None, *, grace: Duration = 24 * 3600.0) -> Changed:
        """Replace a webhook's secret; the previous one stays valid for `grace` seconds."""
        return self._do(Changed, c.RotateSecret, trigger=name, secret=secret, grace=grace)

    def try_trigger(self, name: str, sample: Mapping[str, Any] | None = None) -> Changed:
        """Return what it would create for a sample, or for the last matching event; store nothing."""
        given = None if sample is None else dict(sample)
        return self._do(Changed, c.TryTrigger, trigger=name, sample=given)

    def deliver(self, name: str, headers: Mapping[str, str], body: bytes) -> Changed:
        """Pass a delivery to a webhook, unchanged."""
        return self._do(Changed, c.Deliver, trigger=name, headers=dict(headers), body=body)

    def triggers(self) -> list[TriggerView]:
        """The triggers, by name, without their secrets."""
        return self._ask(q.Triggers(project=self.project))

    def trigger(self, name: str) -> TriggerInFull:
        """One trigger with its template, without its secret."""
        return self._ask(q.ShowTrigger(project=self.project, trigger=name))

    # --- the watch ---

    def set_watch(self, watch: Watch | None) -> Changed:
        """Create a task that investigates when failures of a tag, type or track cluster; None turns it off."""
        return self._do(Changed, c.SetWatch, watch=watch)

    def watched(self) -> WatchedView:
        """The watch's settings and the failure rates, the worst first."""
        return self._ask(q.Watched(project=self.project))


def _template(tasks: Iterable[NewTask] | NewTask, title: str, deadline_in: Duration | None) -> Template:
    several = (tasks,) if isinstance(tasks, NewTask) else tuple(tasks)
    seconds = None if deadline_in is None else seconds_of(deadline_in, "deadline_in")
    return Template(tasks=several, title=title, deadline_in=seconds)
