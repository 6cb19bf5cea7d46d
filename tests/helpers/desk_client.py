"""A browser of a desk: pages and writes as `hushtable desk` serves them, without a server."""

import re
import warnings
from typing import ClassVar

from hushtable_desk.app import build_app
from hushtable_desk.desk import Desk
from hushtable_desk.folder import key_of
from hushtable_desk.security import Access

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it asks for a successor of httpx, which few have yet
    from starlette.testclient import TestClient

PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"


class Browser:
    """A browser that has opened a desk on a folder; `close_all` closes those of a test."""

    opened: ClassVar[list[Desk]] = []

    def __init__(self, folder):
        self.desk = Desk(folder, "Ada")
        self.opened.append(self.desk)
        access = Access(PORT)
        app = build_app(self.desk, access)
        self.client = TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
        assert self.client.get(access.address.removeprefix(ADDRESS)).status_code == 200

    @classmethod
    def close_all(cls):
        """Let go of all logs of verdicts."""
        while cls.opened:
            cls.opened.pop().close()

    def get(self, path, status=200):
        """Return a page's text."""
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, path, content=None, status=200):
        """Return the answer to a write."""
        answer = self.client.post(path, json=content or {}, headers={"Origin": ADDRESS})
        assert answer.status_code == status, answer.text
        return answer.json()


def words(page):
    """Return the text of a page's main part, without marks and pictures."""
    main = re.search(r"<main.*</main>", page, re.DOTALL)[0]
    return " ".join(
        re.sub(r"<[^>]*>", " ", re.sub(r"<svg.*?</svg>", " ", main, flags=re.DOTALL)).split()
    )


def no_style_or_script(page):
    """Check that a page has nothing that its policy blocks."""
    assert not re.search(r"<style|<script(?! src)|<[^>]*\s(style|on\w+)=", page)


__all__ = ["Browser", "key_of", "no_style_or_script", "words"]
