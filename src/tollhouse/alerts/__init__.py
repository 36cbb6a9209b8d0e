"""Alerts that reach people: subscriptions, and the delivery of what the outbox has."""
