"""The functions of Actian Zen's C library for Btrieve 2 that the study calls; the library is loaded at run time.

Names, arguments and numbers are those of its header, btrieveC.h. Every function returns a status. Functions that
retrieve a record return its length, or a negative number; the status is then available from the file.
"""

import ctypes
import glob
import os
import struct
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p

from opjoule_study import Unmeasurable, emptied
from phases import WIDTHS

PLACES = ("/usr/local/actianzen/lib*/libbtrieveC.so", "/usr/local/psql/lib*/libbtrieveC.so")
OLDEST = (13, 0)
NO_ERROR, KEY_NOT_FOUND, END_OF_FILE = 0, 4, 9
EQUAL = 1
"""A comparison."""
NO_INDEX, FIRST_INDEX, SECOND_INDEX = -1, 0, 1
CHAR, INTEGER = 0, 2
"""Data types of a key segment."""
NO_DUPLICATES, DUPLICATES = 0, 1
OVERWRITE, ANYWHERE, NORMAL, NO_LOCK, WAITING = 0, 0, 0, 0, 1
"""Modes of creation, location, opening and locking, and of a transaction whose writes wait for others."""
_AGENT = 0x4232
"""Service agent id, by which the engine distinguishes programs."""
_STATUS = {
    "BtrieveClientAllocate": (POINTER(c_void_p), c_int, c_int),
    "BtrieveClientFileClose": (c_void_p, c_void_p),
    "BtrieveClientFileCreate": (c_void_p, c_void_p, c_void_p, c_char_p, c_int, c_int),
    "BtrieveClientFileOpen": (c_void_p, POINTER(c_void_p), c_char_p, c_char_p, c_int, c_int),
    "BtrieveClientFree": (c_void_p,),
    "BtrieveClientGetVersion": (c_void_p, c_void_p, c_void_p),
    "BtrieveClientReset": (c_void_p,),
    "BtrieveClientTransactionAbort": (c_void_p,),
    "BtrieveClientTransactionBegin": (c_void_p, c_int, c_int),
    "BtrieveClientTransactionEnd": (c_void_p,),
    "BtrieveFileAttributesAllocate": (POINTER(c_void_p),),
    "BtrieveFileAttributesFree": (c_void_p,),
    "BtrieveFileAttributesSetFixedRecordLength": (c_void_p, c_int),
    "BtrieveFileGetLastStatusCode": (c_void_p,),
    "BtrieveFileIndexCreate": (c_void_p, c_void_p),
    "BtrieveFileRecordCreate": (c_void_p, c_void_p, c_int),
    "BtrieveFileRecordDelete": (c_void_p,),
    "BtrieveFileRecordUpdate": (c_void_p, c_void_p, c_int),
    "BtrieveIndexAttributesAddKeySegment": (c_void_p, c_void_p),
    "BtrieveIndexAttributesAllocate": (POINTER(c_void_p),),
    "BtrieveIndexAttributesFree": (c_void_p,),
    "BtrieveIndexAttributesSetDuplicateMode": (c_void_p, c_int),
    "BtrieveIndexAttributesSetModifiable": (c_void_p, c_int),
    "BtrieveKeySegmentAllocate": (POINTER(c_void_p),),
    "BtrieveKeySegmentFree": (c_void_p,),
    "BtrieveKeySegmentSetField": (c_void_p, c_int, c_int, c_int),
    "BtrieveVersionAllocate": (POINTER(c_void_p),),
    "BtrieveVersionFree": (c_void_p,),
}
_LENGTH = {
    "BtrieveFileRecordRetrieve": (c_void_p, c_int, c_int, c_char_p, c_int, c_void_p, c_int, c_int),
    "BtrieveFileRecordRetrieveFirst": (c_void_p, c_int, c_void_p, c_int, c_int),
    "BtrieveFileRecordRetrieveNext": (c_void_p, c_void_p, c_int, c_int),
}
_NUMBER = {
    "BtrieveVersionGetLocalVersionNumber": (c_void_p,),
    "BtrieveVersionGetLocalRevisionNumber": (c_void_p,),
}
_TEXT = "BtrieveStatusCodeToString"


class BtrieveFault(Exception):
    """A function failed; the message has its name and status."""

    def __init__(self, function, status, text):
        super().__init__(f"{function}: status {status}, {text}")
        self.status = status


class NoLibrary(Exception):
    """The library is missing, or is not a Btrieve 2 library."""


class Library:
    """The loaded library."""

    def __init__(self, path=""):
        """Loads the library.

        Args: path: path of the library; if empty, the folders of Actian's packages are searched.
        Raises: NoLibrary: it is missing, cannot be loaded, or lacks a function.
        """
        paths = [path] if path else [path for place in PLACES for path in sorted(glob.glob(place))]
        if not paths:
            raise NoLibrary(f"libbtrieveC.so is not in {' or '.join(PLACES)}")
        try:
            self._library = ctypes.CDLL(paths[0])
            for name, arguments in {**_STATUS, **_LENGTH, **_NUMBER}.items():
                getattr(self._library, name).argtypes = arguments
            text = getattr(self._library, _TEXT)
        except OSError as error:
            raise NoLibrary(str(error)) from None
        except AttributeError as error:
            raise NoLibrary(f"{paths[0]} is not a Btrieve 2 library, or is too old: {error}") from None
        text.argtypes, text.restype = (c_int,), c_char_p
        self._text = text

    def function(self, name):
        """The plain function, for calls on each row."""
        return getattr(self._library, name)

    def call(self, name, *arguments):
        """Calls a function that returns a status. Raises: BtrieveFault: the status is not 0."""
        self.check(name, getattr(self._library, name)(*arguments))

    def check(self, name, status):
        """Checks a status. Raises: BtrieveFault: it is not 0."""
        if status != NO_ERROR:
            text = self._text(status) or b"?"
            raise BtrieveFault(name, status, text.decode(errors="replace"))

    def made(self, name, *arguments):
        """Result of an Allocate function."""
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle

    def client(self, number):
        """A client of the engine; `number` distinguishes it from this program's other clients."""
        return self.made("BtrieveClientAllocate", _AGENT, number)

    def opened(self, client, path):
        """An open file."""
        handle = c_void_p()
        self.call("BtrieveClientFileOpen", client, byref(handle), path.encode(), None, NORMAL, ANYWHERE)
        return handle

    def index(self, offset, length, data_type, duplicates):
        """Attributes of an index with one segment whose value may be changed."""
        segment, made = self.made("BtrieveKeySegmentAllocate"), self.made("BtrieveIndexAttributesAllocate")
        self.call("BtrieveKeySegmentSetField", segment, offset, length, data_type)
        self.call("BtrieveIndexAttributesAddKeySegment", made, segment)
        self.call("BtrieveIndexAttributesSetDuplicateMode", made, duplicates)
        self.call("BtrieveIndexAttributesSetModifiable", made, 1)
        self.call("BtrieveKeySegmentFree", segment)
        return made

    def create(self, client, path, length, index):
        """Creates a new file with its first index, for records of a fixed length [B]."""
        made = self.made("BtrieveFileAttributesAllocate")
        self.call("BtrieveFileAttributesSetFixedRecordLength", made, length)
        self.call("BtrieveClientFileCreate", client, made, index, path.encode(), OVERWRITE, ANYWHERE)
        self.call("BtrieveFileAttributesFree", made)

    def version(self, client):
        """(version, revision) of the engine. Raises: BtrieveFault: it does not answer."""
        made = self.made("BtrieveVersionAllocate")
        self.call("BtrieveClientGetVersion", client, made, None)
        numbers = tuple(self.function(name)(made) for name in _NUMBER)
        self.call("BtrieveVersionFree", made)
        return numbers


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
        if version < OLDEST:
            raise Unmeasurable(f"{self.version} is too old: {OLDEST[0]} or later has Btrieve 2")
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
        first = library.index(0, 4, INTEGER, NO_DUPLICATES)
        second = library.index(_OFFSETS["state"], WIDTHS["state"], CHAR, DUPLICATES)
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
        self._library.call("BtrieveClientTransactionBegin", self._client, WAITING, NO_LOCK)
        try:
            work()
        except BaseException:
            self._library.function("BtrieveClientTransactionAbort")(self._client)
            raise
        self._library.call("BtrieveClientTransactionEnd", self._client)

    def select(self, column, value):
        """Rows with this value in the column."""
        return [_row(self._buffer.raw) for _ in self._found(column, value, NO_INDEX)]

    def ids(self, column, value):
        """Ids of the rows with this value in the column."""
        return [_RECORD.unpack(self._buffer.raw)[0] for _ in self._found(column, value, NO_INDEX)]

    def _found(self, column, value, scan):
        """Yields once for each row that is found; the row is then the current one and in the buffer.

        Args: scan: index for scanning all rows if the column has none. NO_INDEX is the fastest, but loses its place
            when the current row is deleted.
        """
        start, wanted = _OFFSETS[column], value.encode()
        end, buffer, size, file = start + len(wanted), self._buffer, _RECORD.size, self._file
        by_index, read_next, no_lock = column == "state", self._next, NO_LOCK
        if by_index:
            name, index = "BtrieveFileRecordRetrieve", SECOND_INDEX
            length = self._equal(file, EQUAL, index, wanted, len(wanted), buffer, size, no_lock)
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
        if status not in (KEY_NOT_FOUND, END_OF_FILE):
            self._library.check(name, status)

    def row(self, number):
        """One row by its id, read through a second handle so that the first one keeps its place."""
        if self._reader is None:
            self._reader = self._library.opened(self._client, self._file_path)
        buffer, key = ctypes.create_string_buffer(_RECORD.size), struct.pack("<i", number)
        index, no_lock = FIRST_INDEX, NO_LOCK
        length = self._equal(self._reader, EQUAL, index, key, len(key), buffer, _RECORD.size, no_lock)
        if length < 0:
            self._library.check("BtrieveFileRecordRetrieve", self._status(self._reader))
        return _row(buffer.raw)

    def everything(self):
        """All rows, ordered by id."""
        rows, file, buffer, no_lock = [], self._file, self._buffer, NO_LOCK
        length = self._first(file, FIRST_INDEX, buffer, _RECORD.size, no_lock)
        while length >= 0:
            rows.append(_row(buffer.raw))
            length = self._next(file, buffer, _RECORD.size, no_lock)
        self._ended("BtrieveFileRecordRetrieveNext", file)
        return rows

    def update_each(self, column, value, target, written, after):
        """Rewrites each row that is found in place, and then calls after(id)."""
        start, text = _OFFSETS[target], written.encode().ljust(WIDTHS[target], b"\0")
        for _ in self._found(column, value, FIRST_INDEX):
            self._buffer[start : start + len(text)] = text
            self._library.call("BtrieveFileRecordUpdate", self._file, self._buffer, _RECORD.size)
            after(struct.unpack_from("<i", self._buffer)[0])

    def update_all(self, column, value, target, written):
        """Updates all rows that are found in one transaction."""
        self._together(lambda: self.update_each(column, value, target, written, lambda number: None))

    def delete_each(self, column, value, after):
        """Deletes each row that is found in place, and then calls after(id)."""
        for _ in self._found(column, value, FIRST_INDEX):
            self._library.call("BtrieveFileRecordDelete", self._file)
            after(struct.unpack_from("<i", self._buffer)[0])

    def delete_all(self, column, value):
        """Deletes all rows that are found in one transaction."""
        self._together(lambda: self.delete_each(column, value, lambda number: None))


def _row(record):
    """The row in a record."""
    number, *texts = _RECORD.unpack(record)
    return (number, *(text.rstrip(b"\0").decode() for text in texts))
