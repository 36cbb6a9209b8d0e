"""The Responses endpoint: a chat request on the way in, typed events on the way out."""
