"""Masked rounds in steps, as in Bonawitz et al., *Practical Secure Aggregation* (2017), figure 4.

`shares` and `steps` contain both sides of each step: the site's answer, and the coordinator's
requests and checks. `site` guides a site through them, `tally` and `secure_sum` guide the
coordinator; `carriers` transport the `messages`.
"""
