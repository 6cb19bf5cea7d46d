"""The masked sum: who sends what in which step, after Bonawitz et al. (2017), figure 4.

There are no files, no clock and no network here: messages come in as bytes and go out as bytes.
`masks` has the cryptography, `messages` what is signed, `site` the answers of a site, and `tally`
the coordinator's requests and the sum. ``docs/explanation/rounds.md`` has the steps and the proof.
"""
