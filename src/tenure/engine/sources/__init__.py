"""Schedules and triggers: schedules, triggers, deliveries, ends of dags, the failure watch."""
