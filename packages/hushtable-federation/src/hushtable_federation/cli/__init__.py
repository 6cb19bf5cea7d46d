"""The commands that this package adds: several organisations, files only, no server."""

COMMANDS = """
plan hide       secret:hide             Take the hash functions off a plan, for the coordinator.
round           -6                 Count with others: each sends files, only the sum can be read.
round keygen    keygen       Make the keys of a site (with --cap) or of a coordinator.
round meet      meet         Compare all cards in one call, by a code that everyone reads.
round open      open_:open_  Open a round: sign what is counted, by whom, on which terms.
round sync      sync:sync    Do whatever is to be done next in a folder where rounds live.
round status    status       Show where a round stands: who is in, and who has to do what.
round book      book         Show a site's book: rounds answered, and the budget spent.
round kit       kit          Write the files of a trial: accounts, SFTP, timers, settings.
round policy    show:policy     Check the policy of a site, and show what it allows.
round show      show:show       Show what a round asks, of whom, and what it costs.
round amend     sync:amend   Extend a round in a folder, or go on without a site.
round protect   protect    Encrypt keys, and the book that goes with them, by a passphrase.
round approve   show:approve    Sign a round as the officer whom a site's policy names.
round verify    verify     Check who signed a result, and whether it is the sum.
round rehearse  rehearse     Play a whole round in a folder with invented rows.
round next      next_:next_  Open the round of the next period, or the one after marginals.
round compare   model:compare    Compare a site's rows with what all others in a result counted.
round ranges    ranges:ranges    Read plausible ranges off a result, and how sure they are by noise.
round model     model:model      Make the model that a site scores with out of a result.
round secret    secret:secret     Make a secret from which the sites draw hidden hash functions.
"""
