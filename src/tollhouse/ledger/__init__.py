"""Money: credit, holds, settlements, caps. Nothing here is ever overspent."""
