"""The table of contacts as a Btrieve file of Actian Zen: one record for each row, and indexes on id and state."""

import ctypes
import os
import struct

import btrieve
from btrieve import BtrieveFault, Library, NoLibrary
from opjoule_study import Unmeasurable, emptied
from phases import WIDTHS

_RECORD = struct.Struct("<i" + "".join(f"{width}s" for width in WIDTHS.values()))
_OFFSETS = dict(zip(WIDTHS, (4 + sum(list(WIDTHS.values())[:number]) for number in range(len(WIDTHS))), strict=True))
"""Column -> its offset in a record; texts are padded with zero bytes."""
_CLIENTS = 60_000


class ZenTable:
    """One file. Outside of _together(), each operation is on its own, which is the engine's default."""

    def __init__(self, folder, path):
        """Loads the library and checks that the engine answers.

        Args:
            folder: folder of the file.
            path: path of the library; if empty, it is searched.
        Raises: Unmeasurable: it is missing, does not answer, or is too old.
        """
        self._folder, self._file_path = folder, os.path.join(folder, "contacts.mkd")
        self._clients, self._reader = 0, None
        try:
            self._library = Library(path)
            client = self._library.client(self._next_client())
            version = self._library.version(client)
            self._library.call("BtrieveClientFree", client)
        except NoLibrary as error:
            raise Unmeasurable(
                f"{error}: install Actian Zen on the board, or give the library's path as 'zen = PATH' "
                "in the file of --connections"
            ) from None
        except BtrieveFault as error:
            raise Unmeasurable(f"Actian Zen does not answer: {error}") from None
        self.version = f"Actian Zen {version[0]}.{version[1]:02}"
        if version < btrieve.OLDEST:
            raise Unmeasurable(f"{self.version} is too old: {btrieve.OLDEST[0]} or later has Btrieve 2")
        self._buffer = ctypes.create_string_buffer(_RECORD.size)
        self._first = self._library.function("BtrieveFileRecordRetrieveFirst")
        self._next = self._library.function("BtrieveFileRecordRetrieveNext")
        self._equal = self._library.function("BtrieveFileRecordRetrieve")
        self._status = self._library.function("BtrieveFileGetLastStatusCode")

    def _next_client(self):
        self._clients = self._clients % _CLIENTS + 1
        return self._clients

    def create(self):
        """Creates a new file with both indexes, and closes it."""
        emptied(self._folder)
        library, client = self._library, self._library.client(self._next_client())
        first = library.index(0, 4, btrieve.INTEGER, btrieve.NO_DUPLICATES)
        second = library.index(_OFFSETS["state"], WIDTHS["state"], btrieve.CHAR, btrieve.DUPLICATES)
        library.create(client, self._file_path, _RECORD.size, first)
        file = library.opened(client, self._file_path)
        library.call("BtrieveFileIndexCreate", file, second)
        library.call("BtrieveClientFileClose", client, file)
        for index in (first, second):
            library.call("BtrieveIndexAttributesFree", index)
        library.call("BtrieveClientReset", client)
        library.call("BtrieveClientFree", client)

    def open(self):
        """Opens the file with one client."""
        self._client = self._library.client(self._next_client())
        self._file = self._library.opened(self._client, self._file_path)

    def close(self):
        """Closes the file and removes the client from the engine."""
        for file in filter(None, (self._reader, self._file)):
            self._library.call("BtrieveClientFileClose", self._client, file)
        self._reader = None
        self._library.call("BtrieveClientReset", self._client)
        self._library.call("BtrieveClientFree", self._client)

    def drop(self):
        """Does nothing, as its folder is removed with the measurement's."""

    def insert(self, contact):
        """Inserts one row."""
        number, *texts = contact
        _RECORD.pack_into(self._buffer, 0, number, *(text.encode() for text in texts))
        self._library.call("BtrieveFileRecordCreate", self._file, self._buffer, _RECORD.size)

    def insert_all(self, contacts):
        """Inserts rows in one transaction."""
        self._together(lambda: [self.insert(contact) for contact in contacts])

    def _together(self, work):
        """Does work in one transaction."""
        self._library.call("BtrieveClientTransactionBegin", self._client, btrieve.WAITING, btrieve.NO_LOCK)
        try:
            work()
        except BaseException:
            self._library.function("BtrieveClientTransactionAbort")(self._client)
            raise
        self._library.call("BtrieveClientTransactionEnd", self._client)

    def select(self, column, value):
        """Rows with this value in the column."""
        return [_row(self._buffer.raw) for _ in self._found(column, value, btrieve.NO_INDEX)]

    def ids(self, column, value):
        """Ids of the rows with this value in the column."""
        return [_RECORD.unpack(self._buffer.raw)[0] for _ in self._found(column, value, btrieve.NO_INDEX)]

    def _found(self, column, value, scan):
        """Yields once for each row that is found; the row is then the current one and in the buffer.

        Args: scan: index for scanning all rows if the column has none. NO_INDEX is the fastest, but loses its place
            when the current row is deleted.
        """
        start, wanted = _OFFSETS[column], value.encode()
        end, buffer, size, file = start + len(wanted), self._buffer, _RECORD.size, self._file
        by_index, read_next, no_lock = column == "state", self._next, btrieve.NO_LOCK
        if by_index:
            name, index = "BtrieveFileRecordRetrieve", btrieve.SECOND_INDEX
            length = self._equal(file, btrieve.EQUAL, index, wanted, len(wanted), buffer, size, no_lock)
        else:
            name, length = "BtrieveFileRecordRetrieveFirst", self._first(file, scan, buffer, size, no_lock)
        while length >= 0:
            if buffer[start:end] == wanted:
                yield
            elif by_index:
                return
            name, length = "BtrieveFileRecordRetrieveNext", read_next(file, buffer, size, no_lock)
        self._ended(name, file)

    def _ended(self, name, file):
        """Checks the end of a retrieval. Raises: BtrieveFault: it ended for another reason than the end of the rows."""
        status = self._status(file)
        if status not in (btrieve.KEY_NOT_FOUND, btrieve.END_OF_FILE):
            self._library.check(name, status)

    def row(self, number):
        """One row by its id, read through a second handle so that the first one keeps its place."""
        if self._reader is None:
            self._reader = self._library.opened(self._client, self._file_path)
        buffer, key = ctypes.create_string_buffer(_RECORD.size), struct.pack("<i", number)
        index, no_lock = btrieve.FIRST_INDEX, btrieve.NO_LOCK
        length = self._equal(self._reader, btrieve.EQUAL, index, key, len(key), buffer, _RECORD.size, no_lock)
        if length < 0:
            self._library.check("BtrieveFileRecordRetrieve", self._status(self._reader))
        return _row(buffer.raw)

    def everything(self):
        """All rows, ordered by id."""
        rows, file, buffer, no_lock = [], self._file, self._buffer, btrieve.NO_LOCK
        length = self._first(file, btrieve.FIRST_INDEX, buffer, _RECORD.size, no_lock)
        while length >= 0:
            rows.append(_row(buffer.raw))
            length = self._next(file, buffer, _RECORD.size, no_lock)
        self._ended("BtrieveFileRecordRetrieveNext", file)
        return rows

    def update_each(self, column, value, target, written, after):
        """Rewrites each row that is found in place, and then calls after(id)."""
        start, text = _OFFSETS[target], written.encode().ljust(WIDTHS[target], b"\0")
        for _ in self._found(column, value, btrieve.FIRST_INDEX):
            self._buffer[start : start + len(text)] = text
            self._library.call("BtrieveFileRecordUpdate", self._file, self._buffer, _RECORD.size)
            after(struct.unpack_from("<i", self._buffer)[0])

    def update_all(self, column, value, target, written):
        """Updates all rows that are found in one transaction."""
        self._together(lambda: self.update_each(column, value, target, written, lambda number: None))

    def delete_each(self, column, value, after):
        """Deletes each row that is found in place, and then calls after(id)."""
        for _ in self._found(column, value, btrieve.FIRST_INDEX):
            self._library.call("BtrieveFileRecordDelete", self._file)
            after(struct.unpack_from("<i", self._buffer)[0])

    def delete_all(self, column, value):
        """Deletes all rows that are found in one transaction."""
        self._together(lambda: self.delete_each(column, value, lambda number: None))


def _row(record):
    """The row in a record."""
    number, *texts = _RECORD.unpack(record)
    return (number, *(text.rstrip(b"\0").decode() for text in texts))
