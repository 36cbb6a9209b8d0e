"""Schema revisions, forward only: each has two tuples of literal statements.

`STATEMENTS` is the expand step: it adds, and the previous release goes on beside it. `CONTRACT` is
the contract step: it removes what the previous release needed, and may be empty. Revisions up to
0016 have one step. docs/architecture/schema.md says how a revision is written.
"""
