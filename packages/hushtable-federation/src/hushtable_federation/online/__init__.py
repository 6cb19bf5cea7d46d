"""Masked rounds over a transport: a loop over the steps of `hushtable_federation.protocol`.

`site` is a site with its rows and its book; `secure_sum` drives the coordinator's tally, with a
`journal` on disk; `carriers` transport the messages.
"""
