"""Write golden files of a round for the current protocol, if there are none."""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from hushtable import LocalModel, files
from round_helpers import T0, Consortium

folder = Path(__file__).parent / f"protocol-{files.PROTOCOL}" / "rounds"
folder.mkdir()
with tempfile.TemporaryDirectory() as scratch:
    those = Consortium(Path(scratch), 2)
    round_ = those.open(title="golden", masked=False)
    sent = {name: site.submit(round_) for name, site in those.sites.items()}
    result = those.sum(round_, sent, T0)
    answer = those.sites["s00"].book.answer(round_.round_id)
    local = LocalModel.of(result, answer.share.release, answer.sent, answer.counts)
    those.close()
round_.save(folder / "round.hush")
for name, content in sent.items():
    files.write_bytes(folder / f"{name}.submission.hush", content)
local.save(folder / "local.hush")
expected = {
    "round_id": round_.round_id,
    "counts": result.counts.tolist(),
    "local": local.counts.tolist(),
}
(folder / "expected.json").write_text(json.dumps(expected) + "\n")
