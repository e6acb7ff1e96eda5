"""Recognises what lies in the place of a document file or a tokenizer after a copy or a download, by its first bytes. The
C++ programs have the same in common/base/foreign_file.h."""

from .errors import InputError

HEAD_BYTES = 512
LFS = b"version https://git-lfs.github.com/spec/"
PACKED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz"), (b"BZh", "bzip2"), (b"PK\x03\x04", "zip"))
UTF16 = (b"\xff\xfe", b"\xfe\xff")
PAGES = (b"<!doctype html", b"<html")


def refuse_foreign(path, head, may_be_page=False):
    """InputError: the file, which begins with `head`, is something else. `may_be_page`: a web page is a document like any other."""
    if head.startswith(UTF16):
        raise InputError(f"{path}: is UTF-16, as Notepad (\"Unicode\") and PowerShell (>) write it: save it as UTF-8")
    if head.startswith(LFS):
        raise InputError(f"{path}: is a Git LFS pointer, not the file itself: run git lfs pull in its clone, and copy it again")
    for begin, name in PACKED:
        if head.startswith(begin):
            raise InputError(f"{path}: is compressed with {name}: unpack it first")
    if not may_be_page and head[:HEAD_BYTES].lstrip().lower().startswith(PAGES):
        raise InputError(f"{path}: is a web page (HTML), such as a login or an error: download it again, with what its server asks for")
