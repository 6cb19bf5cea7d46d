"""The page of where a round stands as people see it: on a phone and on a desk."""

import pytest

import chromium
from hushtable.language import speaking
from hushtable_federation.cli.sync import page
from hushtable_federation.protocol.messages import Message
from hushtable_federation.refusals import Refusal
from rehearsal import FolderRound
from report_helpers import Parsed


@pytest.mark.slow
@pytest.mark.skipif(chromium.found() is None, reason="no Chromium here")
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_and_a_desk(dark, tmp_path):
    play = FolderRound(tmp_path, 20)
    posts = play.open()
    word = Message.refuse(play.round.round_id, play.keys["site03"], Refusal.UNKNOWN)
    posts.add("refused", "site03", word)
    posts.add("masked", "site04", b"x")
    posts.amend(play.lead, drop=("site05",), why="a reason that is long, " * 20)
    path = tmp_path / "status.html"
    path.write_text(page([play.state()], "sftp://a-server.example/a/folder/" + "deep/" * 30))
    play.close()
    with chromium.Chromium(tmp_path / "profile") as browser:
        for width in (390, 1280):
            browser.show(path, width, dark=dark)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run("document.querySelectorAll('tbody tr').length") == 20
        assert browser.complaints == []
        assert browser.asked == [path.as_uri()] * 2


def test_a_german_page_has_no_english(tmp_path):
    play = FolderRound(tmp_path, 5)
    posts = play.open()
    word = Message.refuse(play.round.round_id, play.keys["site03"], Refusal.UNKNOWN)
    posts.add("refused", "site03", word)
    with speaking("de"):
        german = page([play.state()], "/mnt/runde")
    english = page([play.state()], "/mnt/runde")
    play.close()
    assert '<html lang="de">' in german
    assert '<html lang="en">' in english
    headings = "Status", "Next steps", "Sites", "Terms and cost"
    assert all(f">{heading}</h" in english for heading in headings)
    words = {word.strip(".,:;()") for word in Parsed(german).text.split()}
    assert not words & {"the", "and", "of", "rows", "sites", "is", "are", "noise", "until", "Sites"}
    assert "Nächste Schritte" in german
    assert "Wer mit gleichen Chancen vermutet, dass eine Person unter den Zeilen ist" in german
