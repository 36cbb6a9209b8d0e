"""Encryption of secrets: of most for a day and never afterwards, of some until they are deleted.

Each UTC day has a random data key, stored encrypted (wrapped) under a master secret: the newest one
that every live worker accepts. While the master secret is rotated, data keys that are wrapped under
the previous one can still be read, and `rewrap` wraps them under the newest. Deleting the row of a
day makes all secrets that were sealed on that day unreadable, in the database and in later dumps.
An earlier backup, together with the master secret, can still be decrypted.

Secrets without an end, such as those that sign alerts, have one data key that is never destroyed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tollhouse.storage import master_secrets
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.master_secrets import MasterSecrets

DATA_KEY_LIFETIME = timedelta(hours=48)
LASTING = date.max
"""The day of the data key that is never destroyed."""
_NONCE_BYTES = 12
_KEY_BYTES = 32
_TAG_BYTES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A ciphertext, and the day whose data key opens it."""

    ciphertext: bytes
    day: date


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unwrapped:
    """A data key, and the ID of the master secret that it was wrapped under."""

    master_id: str
    key: bytes


class DataKeyGone(Exception):
    """The day's data key was destroyed, or no configured master secret opens it."""


class Sealer:
    """Encrypts and decrypts with the data key of a day, which it caches."""

    def __init__(self, database: Database, masters: MasterSecrets) -> None:
        self._database = database
        self._masters = masters
        self._wrapping = {
            master_id: _wrapping_key(secret) for master_id, secret in masters.by_id.items()
        }
        self._data_keys: Mapping[date, AESGCM] = {}

    async def seal(self, plaintext: bytes, *, bound_to: bytes, now: datetime) -> Sealed:
        """Encrypt under the data key of today. `open` needs the same `bound_to`."""
        self._forget_old(now)
        return await self._seal(plaintext, bound_to, now.date())

    async def seal_lasting(self, plaintext: bytes, *, bound_to: bytes) -> bytes:
        """Encrypt without an end. `open_lasting` needs the same `bound_to`."""
        return (await self._seal(plaintext, bound_to, LASTING)).ciphertext

    async def open_lasting(self, ciphertext: bytes, *, bound_to: bytes) -> bytes:
        """Decrypt. Raises `DataKeyGone` if it was encrypted by another deployment."""
        return await self._open(Sealed(ciphertext=ciphertext, day=LASTING), bound_to)

    async def _seal(self, plaintext: bytes, bound_to: bytes, day: date) -> Sealed:
        data_key = await self._data_key(day, create=True)
        nonce = os.urandom(_NONCE_BYTES)
        return Sealed(ciphertext=nonce + data_key.encrypt(nonce, plaintext, bound_to), day=day)

    async def open(self, sealed: Sealed, *, bound_to: bytes, now: datetime) -> bytes:
        """Decrypt. Raises `DataKeyGone` if the data key is too old, does not exist or does not fit.

        Another worker may have destroyed a data key that this one has cached.
        """
        if sealed.day <= self._forget_old(now):
            raise DataKeyGone
        return await self._open(sealed, bound_to)

    async def _open(self, sealed: Sealed, bound_to: bytes) -> bytes:
        data_key = await self._data_key(sealed.day, create=False)
        nonce, ciphertext = sealed.ciphertext[:_NONCE_BYTES], sealed.ciphertext[_NONCE_BYTES:]
        try:
            return data_key.decrypt(nonce, ciphertext, bound_to)
        except InvalidTag:
            raise DataKeyGone from None

    async def _data_key(self, day: date, *, create: bool) -> AESGCM:
        if (known := self._data_keys.get(day)) is not None:
            return known
        # A separate transaction, so that the day's first creations of two organizations
        # do not wait for each other.
        async with self._database.transaction() as tx:
            data_key = await self._read_or_create(tx, day) if create else await self._read(tx, day)
        self._data_keys = {**self._data_keys, day: data_key}
        return data_key

    async def _read(self, tx: Transaction, day: date) -> AESGCM:
        wrapped = await tx.fetch_value("SELECT wrapped FROM data_keys WHERE day = $1", day)
        if wrapped is None:
            raise DataKeyGone
        return AESGCM(self._unwrap(wrapped, day).key)

    async def _read_or_create(self, tx: Transaction, day: date) -> AESGCM:
        """Return the day's data key; create one if none exists that a configured secret opens."""
        try:
            return await self._read(tx, day)
        except DataKeyGone:
            await master_secrets.lock(tx)
        try:
            return await self._read(tx, day)
        except DataKeyGone:
            writing_id = await master_secrets.writing_id(tx, self._masters)
        key = os.urandom(_KEY_BYTES)
        await tx.execute(
            """
            INSERT INTO data_keys (day, wrapped) VALUES ($1, $2)
            ON CONFLICT (day) DO UPDATE SET wrapped = EXCLUDED.wrapped
            """,
            day,
            self._wrap(key, day, writing_id),
        )
        return AESGCM(key)

    async def rewrap(self) -> int:
        """Wrap all data keys under the secret that is used for writing; return how many changed.

        Afterwards no data key that can be read needs another master secret.
        """
        if len(self._wrapping) == 1:
            return 0
        async with self._database.transaction() as tx:
            await master_secrets.lock(tx)
            writing_id = await master_secrets.writing_id(tx, self._masters)
            rows = await tx.fetch_all("SELECT day, wrapped FROM data_keys")
            return sum(
                [await self._rewrap(tx, row["day"], row["wrapped"], writing_id) for row in rows]
            )

    async def _rewrap(self, tx: Transaction, day: date, wrapped: bytes, writing_id: str) -> int:
        try:
            opened = self._unwrap(wrapped, day)
        except DataKeyGone:
            return 0
        if opened.master_id == writing_id:
            return 0
        rewrapped = self._wrap(opened.key, day, writing_id)
        return await tx.execute("UPDATE data_keys SET wrapped = $2 WHERE day = $1", day, rewrapped)

    async def opening_ids(self) -> dict[date, str | None]:
        """Return the ID of the master secret that opens each day's data key, or None."""
        rows = await self._database.fetch_all("SELECT day, wrapped FROM data_keys ORDER BY day")
        return {row["day"]: self._opening_id(row["wrapped"], row["day"]) for row in rows}

    def _opening_id(self, wrapped: bytes, day: date) -> str | None:
        try:
            return self._unwrap(wrapped, day).master_id
        except DataKeyGone:
            return None

    def _wrap(self, key: bytes, day: date, master_id: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._wrapping[master_id].encrypt(nonce, key, day.isoformat().encode())

    def _unwrap(self, wrapped: bytes, day: date) -> _Unwrapped:
        if len(wrapped) != _NONCE_BYTES + _KEY_BYTES + _TAG_BYTES:
            raise DataKeyGone
        nonce, ciphertext = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
        for master_id, wrapping in self._wrapping.items():
            try:
                key = wrapping.decrypt(nonce, ciphertext, day.isoformat().encode())
            except InvalidTag:
                continue
            return _Unwrapped(master_id=master_id, key=key)
        raise DataKeyGone

    async def destroy_old(self, now: datetime) -> int:
        """Delete the data keys of days that began at least 48 hours ago; return how many."""
        newest_destroyed = self._forget_old(now)
        async with self._database.transaction() as tx:
            return await tx.execute("DELETE FROM data_keys WHERE day <= $1", newest_destroyed)

    def _forget_old(self, now: datetime) -> date:
        """Forget data keys of days that began at least 48 hours ago; return the last such day."""
        newest_old = (now - DATA_KEY_LIFETIME).date()
        self._data_keys = {day: key for day, key in self._data_keys.items() if day > newest_old}
        return newest_old


def _wrapping_key(master_secret: bytes) -> AESGCM:
    derivation = HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"tollhouse sealing v1")
    return AESGCM(derivation.derive(master_secret))
