"""Which failures an operation may answer. Only the list of chat is given; none is closed (OQ-03).

The statuses 405, 408 and 431 can come from any route, before an operation is reached.
"""

CHAT = (400, 401, 402, 403, 404, 409, 413, 415, 422, 429, 500, 501, 502, 503, 504)
COUNTING = (400, 401, 403, 404, 413, 415, 422, 429, 500, 501, 502, 503, 504)
MODEL_READING = (400, 401, 403, 404, 429, 500, 503)
READING = (400, 401, 403, 404, 429, 500, 503)
ASKING = (400, 401, 403, 404, 413, 415, 429, 500, 503)
WRITING = (400, 401, 403, 404, 409, 413, 415, 429, 500, 503)
