"""Bytes cut into pieces at places that the fuzzer chooses."""


def cut(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return the rest of `data`, whole and in pieces. Its first byte says how they are cut."""
    if not data:
        return b"", []
    step, whole = data[0] + 1, data[1:]
    return whole, [whole[start : start + step] for start in range(0, len(whole), step)]
