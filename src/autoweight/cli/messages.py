"""What the flag parser says in a box of several lines, as one sentence."""

import re

from autoweight.errors import unknown

_PYTHON_WORDS = {
    ": invalid literal for int() with base 10:": " takes a whole number, not",
    ": could not convert string to float:": " takes a number, not",
    "'None', ": "",
    ", 'None'": "",
    "Unrecognized options: ": "cannot take ",
}
_PATTERNS = {
    r"^Missing value for argument '(\S+)'.*": r"\1 needs a value",
    r"^(\S+): no type matching \S*FLOAT could be instantiated from \[(.*?)\].*": r"\1 takes a number, not \2",
    r"^(\S+): no type matching \S*INT could be instantiated from \[(.*?)\].*": r"\1 takes a whole number, not \2",
    r"^(\S+): Could not find valid parse for arguments: \[(.*)\].*": r"\1 cannot be \2",
}


def one_sentence(box: str) -> str:
    """What stands under the box's title, and the flag that may have been meant."""
    text = "\n".join(line.strip("│╭╮╰╯ ") for line in box.splitlines())
    text = re.sub(r"^─ (.+?) ─+$", r"\1\n─", text, flags=re.MULTILINE)  # the title, where it is part of the frame
    sections = [section.split() for section in re.split(r"^[─-]+$", text, flags=re.MULTILINE) if section.strip()]
    if len(sections) < 2:
        return " ".join(box.split())  # not the box that is known here
    sentence = re.sub(r"^Error parsing (?:\w+: )?", "", " ".join(sections[1]))
    for python, plain in _PYTHON_WORDS.items():
        sentence = sentence.replace(python, plain)
    for pattern, plain in _PATTERNS.items():
        sentence = re.sub(pattern, plain, sentence)
    if choice := re.match(r"invalid choice '(.*?)' for argument '(\S+)'\. Expected one of \((.*)\)", sentence):
        return str(unknown(f"value of {choice[2]}", choice[1], re.findall(r"'(.+?)'", choice[3])))
    for section in sections:
        if section[:3] == ["Perhaps", "you", "meant:"]:
            return f"{sentence}: did you mean {section[3]}?"
    return sentence.rstrip(".") + "."
