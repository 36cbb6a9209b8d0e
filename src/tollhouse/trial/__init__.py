"""The scripted engine, the small real model and the judge of a trial."""
