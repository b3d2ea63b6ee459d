"""A page as its tags and words."""

import re
from html.parser import HTMLParser
from types import SimpleNamespace

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """Tags with their attributes and the text inside; an unbalanced tag is an error."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(SimpleNamespace(name=tag, start=len(self.words), end=None, attrs=dict(attrs)))
        if tag not in VOID:
            self.open.append(self.tags[-1])

    def handle_endtag(self, tag):
        inside = [t.name for t in self.open]
        assert inside and inside[-1] == tag, f"</{tag}> in {inside}, line {self.getpos()}"
        self.open.pop().end = len(self.words)

    def handle_data(self, data):
        self.words.append(data)

    def text(self, tag=None) -> str:
        return plain("".join(self.words[tag.start : tag.end] if tag else self.words))

    def all(self, *names: str, **attrs) -> list:
        wanted = {k.rstrip("_"): v for k, v in attrs.items()}
        return [t for t in self.tags if t.name in names and wanted.items() <= t.attrs.items()]


def plain(text: str) -> str:
    """Without index and exponent signs, which the page sets smaller instead."""
    return re.sub(r"\s+", " ", re.sub(r"[_^{}]", "", text)).strip()
