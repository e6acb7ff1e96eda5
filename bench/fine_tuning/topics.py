"""A small task to fine-tune for: of which topic of Perl's manual is a passage? Also the text and the tokenizer that its base model
is trained with. Every fifth piece of the manual is held out: the questions are of these, everything else of the others."""
import json
import pathlib
import random
import re
import sys

import tokenizers
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python" / "trainers"))
from models import SPECIAL, TEMPLATE  # noqa: E402

MANUAL = pathlib.Path("/usr/share/perl")  # the pod files of Debian's perl-doc
TOPICS = {
    "news": r"5\w+delta",
    "platforms": r"aix|amiga|android|bs2000|cygwin|ebcdic|freebsd|haiku|hpux|hurd|irix|linux|macosx|openbsd|os2|os390|os400|plan9|port|qnx|"
                 r"riscos|solaris|synology|tru64|vms|vos|win32",
    "regex": r"re|reapi|rebackslash|recharclass|reguts|requick|reref|retut",
    "unicode": r"locale|unicode|unicook|unifaq|uniintro|uniprops|unitut",
    "internals": r"api|apio|call|clib|embed|guts|hack\w*|intern|interp|iol|xs|xstut|xstypemap",
    "questions": r"faq\d",
    "objects": r"dsc|lol|mod\w*|newmod|obj|ootut|ref|reftut",
    "language": r"data|form|func|ipc|op|opentut|packtut|sub|syn|tie|var",
}
QUESTION = "Of which topic is this passage of the manual?\n\n"
PIECE = 3000  # bytes of the manual that are held out together, or not
PASSAGE = 300  # characters
VOCABULARY = 4096


def pieces():
    """{topic: [text]} of the pieces to learn from, and the same of those that are held out."""
    known, held_out = ({topic: [] for topic in TOPICS} for _ in range(2))
    for topic, names in TOPICS.items():
        files = sorted({path.resolve() for path in MANUAL.glob("*/pod/perl*.pod") if re.fullmatch(f"perl({names})", path.stem)})
        if not files:
            sys.exit(f"{MANUAL}: there are no pod files about {topic}: apt-get install perl-doc")
        for path in files:
            text = path.read_text(errors="ignore")
            for number, start in enumerate(range(0, len(text), PIECE)):
                (held_out if number % 5 == 4 else known)[topic].append(text[start:start + PIECE])
    return known, held_out


def passages(texts, numbers):
    """Endless pairs of a passage and its topic, every topic equally often."""
    whole = {topic: [text for text in texts[topic] if len(text) > PASSAGE] for topic in TOPICS}
    while True:
        for topic in TOPICS:
            text = numbers.choice(whole[topic])
            start = numbers.randrange(len(text) - PASSAGE)
            yield text[start:start + PASSAGE].strip(), topic


def tokenizer_of(texts):
    """Byte-level BPE. A topic's name is one token."""
    made = tokenizers.ByteLevelBPETokenizer()
    made.train_from_iterator(texts, vocab_size=VOCABULARY - 16, show_progress=False)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, eos_token=SPECIAL[0], pad_token=SPECIAL[0])
    fast.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    fast.add_tokens(list(TOPICS))
    fast.chat_template = TEMPLATE
    return fast


def write(folder, conversations, questions):
    """chat.jsonl to fine-tune on, questions.jsonl for lm-eval, and the text of the base model, which is returned."""
    known, held_out = pieces()
    numbers = random.Random(1)
    with open(folder / "chat.jsonl", "w") as file:
        for _, (passage, topic) in zip(range(conversations), passages(known, numbers)):
            messages = [{"role": "user", "content": QUESTION + passage}, {"role": "assistant", "content": topic}]
            file.write(json.dumps({"messages": messages}) + "\n")
    with open(folder / "questions.jsonl", "w") as file:
        for _, (passage, topic) in zip(range(questions), passages(held_out, numbers)):
            file.write(json.dumps({"question": QUESTION + passage, "choices": list(TOPICS), "answer": list(TOPICS).index(topic)}) + "\n")
    return [text for texts in known.values() for text in texts]
