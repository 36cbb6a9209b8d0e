"""The operations of `/v1` other than inference, by subject."""
