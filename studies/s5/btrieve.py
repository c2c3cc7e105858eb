"""The functions of Actian Zen's C library for Btrieve 2 that the study calls; the library is loaded at run time.

Names, arguments and numbers are those of its header, btrieveC.h. Every function returns a status. Functions that
retrieve a record return its length, or a negative number; the status is then available from the file.
"""

import ctypes
import glob
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p

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
