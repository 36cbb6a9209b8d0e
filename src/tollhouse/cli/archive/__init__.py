"""`tollhouse archive`: days in Parquet files."""
