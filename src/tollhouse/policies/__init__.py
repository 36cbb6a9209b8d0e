"""Policies: yes-or-no questions with an editable draft and numbered, immutable publications."""
