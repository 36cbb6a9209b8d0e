"""The catalog: models with their prices, backends and the judge."""
