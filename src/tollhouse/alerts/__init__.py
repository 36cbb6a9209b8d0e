"""Alerts that reach people: subscriptions, and the delivery of what triggers put in the outbox."""
