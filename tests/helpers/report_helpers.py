"""What several tests of the report share."""

from html.parser import HTMLParser

#: What a column of someone else's file may be called.
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> $x^2$ {{ 7 * 7 }}"


class Parsed(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self._open = [], "", []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if "style" not in self._open:
            self.text += " " + data

    @property
    def words(self):
        """Return the text with single spaces."""
        return " ".join(self.text.split())

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]
