"""Long documents are cut at places that their own bytes decide, and nothing is lost."""

import random
import unittest

from distro_data.pieces import PIECE_BYTES, cut, first_piece


class PiecesTest(unittest.TestCase):
    def test_ends_at_lines_spaces_or_characters(self):
        for text, pieces in [(b"", []),
                             (b"12345678", [b"12345678"]),
                             (b"ab\ncd\nef\ngh", [b"ab\ncd\n", b"ef\ngh"]),
                             (b"ab\ncd\n\n\n\nef", [b"ab\n", b"cd\n\n\n\nef"]),  # not inside white space
                             (b"abc def ghi", [b"abc def", b" ghi"]),
                             (b"abcdefghi", [b"abcdefgh", b"i"]),
                             ("aaaaaa\u20acb".encode(), [b"aaaaaa", "\u20acb".encode()]),
                             ("aaaa\U0001f600b".encode(), ["aaaa\U0001f600".encode(), b"b"]),
                             (b"\n\n\n\n\n\n\n\n\n", [b"\n" * 8, b"\n"])]:
            self.assertEqual(list(cut(text, 8)), pieces)

    def test_pieces_are_the_document_and_never_half_a_character(self):
        chance = random.Random(3)
        for _ in range(300):
            text = "".join(chance.choices("ab \n\u00fc\u20ac\U0001f600", k=chance.randint(0, 200))).encode()
            pieces = list(cut(text, 16))
            self.assertEqual(b"".join(pieces), text)
            for piece in pieces:
                self.assertTrue(0 < len(piece) <= 16)
                piece.decode()

    def test_only_the_bytes_within_the_limit_decide(self):
        self.assertEqual(first_piece(b"ab cdefghi", 8), first_piece(b"ab cdefghi\nabcdefgh", 8))

    def test_bytes_that_are_no_text_are_cut_too(self):
        self.assertEqual([len(piece) for piece in cut(b"\x80" * 20, 8)], [4, 4, 4, 8])

    def test_needs_little_memory(self):
        self.assertLessEqual(PIECE_BYTES, 1 << 20)


if __name__ == "__main__":
    unittest.main()
