"""Recognises what lies in the place of a document file or a tokenizer after a copy or a download, by its first bytes. The
C++ programs have the same in common/base/foreign_file.h."""

from .errors import InputError

LFS = b"version https://git-lfs.github.com/spec/"
PACKED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ", "xz"), (b"BZh", "bzip2"), (b"PK\x03\x04", "zip"))
PAGES = (b"<!doctype html", b"<html")


def refuse_foreign(path, may_be_page=False):
    """InputError: the file is something else. `may_be_page`: a web page is a document like any other."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head.startswith(LFS):
        raise InputError(f"{path}: is a Git LFS pointer, not the file itself: run git lfs pull in its clone, and copy it again")
    for begin, name in PACKED:
        if head.startswith(begin):
            raise InputError(f"{path}: is compressed with {name}: unpack it first")
    if not may_be_page and head.lstrip().lower().startswith(PAGES):
        raise InputError(f"{path}: is a web page (HTML), such as a login or an error: download it again, with what its server asks for")
