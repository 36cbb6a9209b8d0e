"""A decoder of server-sent events that arrive in pieces of any size."""

RECORD_BYTES_MAX = 8 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_USUAL_FIELD = b"data: "


class RecordTooLong(Exception):
    """A record exceeds its bound and has not ended."""


class EventDecoder:
    """Decodes one stream. Fields other than `data` are dropped, and so is a record without its end.

    Only CR, LF and CR LF end a line. U+2028 does not: it may be part of a text.
    """

    __slots__ = ("_bytes_max", "_ended_with_cr", "_is_first", "_rest")

    def __init__(self, *, record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        self._bytes_max = record_bytes_max
        self._rest = bytearray()
        self._ended_with_cr = False
        self._is_first = True

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads of the records that end in `data`. Raises `RecordTooLong`."""
        if self._ended_with_cr or b"\r" in data:
            data = self._with_plain_ends(data)
        # Most engines send whole records, which need no buffering.
        ended = data[:-2] if data.endswith(b"\n\n") and not self._rest else self._buffer(data)
        if ended is None:
            return []
        # Most often it is one record of one line.
        if ended.startswith(_USUAL_FIELD) and b"\n" not in ended:
            self._is_first = False
            return [ended[len(_USUAL_FIELD) :]]
        records = ended.split(b"\n\n")
        if self._is_first:
            self._is_first = False
            records[0] = records[0].removeprefix(_BYTE_ORDER_MARK)
        return [payload for record in records if (payload := _payload(record)) is not None]

    def _buffer(self, data: bytes) -> bytes | None:
        """Return all records that have ended, or None. The rest stays buffered."""
        # Of the bytes that were searched before, only the last can be part of an end.
        searched = max(len(self._rest) - 1, 0)
        self._rest += data
        end = self._rest.rfind(b"\n\n", searched)
        if end < 0:
            if len(self._rest) > self._bytes_max:
                raise RecordTooLong
            return None
        ended = bytes(self._rest[:end])
        del self._rest[: end + 2]
        return ended

    def _with_plain_ends(self, data: bytes) -> bytes:
        """Return the bytes with LF at all ends of lines, also where CR LF arrived in two pieces."""
        if self._ended_with_cr and data.startswith(b"\n"):
            data = data[1:]
            self._ended_with_cr = False
        if data:
            self._ended_with_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _payload(record: bytes) -> bytes | None:
    if record.startswith(_USUAL_FIELD) and b"\n" not in record:
        return record[len(_USUAL_FIELD) :]
    values = [value for line in record.split(b"\n") if (value := _data(line)) is not None]
    return b"\n".join(values) if values else None


def _data(line: bytes) -> bytes | None:
    name, _, value = line.partition(b":")
    return value.removeprefix(b" ") if name == b"data" else None
