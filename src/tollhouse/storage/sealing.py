"""Secrets that must be readable for a day and then never again.

Each UTC day has a random data key, stored wrapped under the master secret. Destroying that
row makes everything that was sealed on the day unreadable, in the database and in later
dumps. A backup taken before, together with the master secret, can still open it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tollhouse.storage.database import Database, Transaction

DATA_KEY_LIFETIME = timedelta(hours=48)
_NONCE_BYTES = 12
_KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A ciphertext, and the day whose data key opens it."""

    ciphertext: bytes
    day: date


class DataKeyGone(Exception):
    """The day's data key was destroyed, or the master secret is another one now."""


class Sealer:
    """Seals and opens with the data key of a day."""

    def __init__(self, database: Database, master_secret: bytes) -> None:
        self._database = database
        self._wrapping = AESGCM(
            HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"tollhouse sealing v1").derive(
                master_secret
            )
        )
        self._data_keys: Mapping[date, AESGCM] = {}

    async def seal(self, plaintext: bytes, *, bound_to: bytes, now: datetime) -> Sealed:
        """Encrypt under today's data key. What it is bound to must be given again to open it."""
        day = now.date()
        data_key = await self._data_key(day, create=True)
        nonce = os.urandom(_NONCE_BYTES)
        return Sealed(ciphertext=nonce + data_key.encrypt(nonce, plaintext, bound_to), day=day)

    async def open(self, sealed: Sealed, *, bound_to: bytes) -> bytes:
        """Decrypt, or say that nobody can any more."""
        data_key = await self._data_key(sealed.day, create=False)
        nonce, ciphertext = sealed.ciphertext[:_NONCE_BYTES], sealed.ciphertext[_NONCE_BYTES:]
        try:
            return data_key.decrypt(nonce, ciphertext, bound_to)
        except InvalidTag:
            raise DataKeyGone from None

    async def _data_key(self, day: date, *, create: bool) -> AESGCM:
        if (known := self._data_keys.get(day)) is not None:
            return known
        # A transaction of its own: two organizations' first keys of a day must not wait
        # for each other's creations.
        async with self._database.transaction() as tx:
            data_key = await self._read_or_create(tx, day) if create else await self._read(tx, day)
        self._data_keys = {
            known_day: key
            for known_day, key in self._data_keys.items()
            if abs(known_day - day) < DATA_KEY_LIFETIME
        } | {day: data_key}
        return data_key

    async def _read(self, tx: Transaction, day: date) -> AESGCM:
        wrapped = await tx.fetch_value("SELECT wrapped FROM data_keys WHERE day = $1", day)
        if wrapped is None:
            raise DataKeyGone
        return AESGCM(self._unwrap(wrapped, day))

    async def _read_or_create(self, tx: Transaction, day: date) -> AESGCM:
        """A day's key that another master secret wrapped opens nothing any more: it is replaced."""
        await tx.execute(
            "INSERT INTO data_keys (day, wrapped) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING",
            day,
            self._wrapped_new_key(day),
        )
        try:
            return await self._read(tx, day)
        except DataKeyGone:
            await tx.execute(
                "UPDATE data_keys SET wrapped = $2 WHERE day = $1", day, self._wrapped_new_key(day)
            )
        return await self._read(tx, day)

    def _wrapped_new_key(self, day: date) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        key = os.urandom(_KEY_BYTES)
        return nonce + self._wrapping.encrypt(nonce, key, day.isoformat().encode())

    def _unwrap(self, wrapped: bytes, day: date) -> bytes:
        nonce, ciphertext = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
        try:
            return self._wrapping.decrypt(nonce, ciphertext, day.isoformat().encode())
        except InvalidTag:
            raise DataKeyGone from None

    async def destroy_old(self, now: datetime) -> int:
        """Destroy the data keys of days that began too long ago; returns how many."""
        newest_destroyed = (now - DATA_KEY_LIFETIME).date()
        self._data_keys = {
            day: key for day, key in self._data_keys.items() if day > newest_destroyed
        }
        async with self._database.transaction() as tx:
            return await tx.execute("DELETE FROM data_keys WHERE day <= $1", newest_destroyed)
