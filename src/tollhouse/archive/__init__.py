"""Days of records and of ledger entries in Parquet files, after which they leave the database."""
