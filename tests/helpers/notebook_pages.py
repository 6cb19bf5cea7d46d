"""Pages that objects show in a notebook."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The sentences of a page, its cells, and its tags."""

    def __init__(self, thing):
        super().__init__()
        self.sentences, self.cells, self.tags, self._open = [], [], [], []
        self.feed(thing if isinstance(thing, str) else thing._repr_html_())
        assert not self._open
        self.close()

    def handle_starttag(self, tag, attrs):
        assert {name for name, _ in attrs} <= {"style"}
        self.tags.append(tag)
        self._open.append(tag)
        if tag == "p":
            self.sentences.append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "p" in self._open:
            self.sentences[-1] += data
        else:
            self.cells.append(data)
