"""Credit, holds, settlements and spending caps. Admissions never exceed credit or a cap."""
