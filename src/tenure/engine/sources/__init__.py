"""Where work comes from by itself: schedules, triggers, deliveries, ends of dags, the watch."""
