"""How long sums by hour are kept. Sums by day are kept for good."""

from datetime import timedelta
from typing import Final

HOURS_KEPT: Final = timedelta(days=400)
