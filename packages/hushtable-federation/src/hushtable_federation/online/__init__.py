"""Masked rounds in steps, as in Bonawitz et al., *Practical Secure Aggregation* (2017), figure 4.

`shares` and `steps` have both sides of each step: the site's answer, and what the coordinator asks
and checks. `site` leads a site through them, `tally` and `secure_sum` the coordinator; `carriers`
bring the `messages`.
"""
