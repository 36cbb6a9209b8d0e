"""From a decoded request to an answer, paid for."""
