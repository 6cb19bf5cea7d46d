"""List the commands that this package adds: several organisations, files only, no server."""

COMMANDS = """
demo            demo         Show three hospitals that find outliers together and pool no row.
plan marginals  plan         Make the plan of a first round: one histogram for each column.
plan gate       plan         Make the plan between two passes, which finds dense regions.
plan second     plan         Make the plan that counts rows in dense regions again.
plan ranks      plan         Make the plan of a last round: one histogram of a model's scores.
plan hide       !            noise is what protects rows; open the round with the plan itself
round           -6                 Count with others: each sends files, only the sum is readable.
round keygen    book:keygen  Make the keys of a site (with --cap) or of a coordinator.
round meet      !            send cards to the coordinator; compare their fingerprint (round show)
round open      open_:open_  Open a round: sign what is counted, by whom, on which terms.
round sync      sync:sync    Do whatever is next in a folder of rounds.
round status    sync:status  Show the state of a round: who has answered, and who has to do what.
round show      show:show       Show what a round counts, who takes part, and what it costs.
round book      book:book    Show a site's book: rounds answered, and the budget spent.
round kit       !            adapt the example files of docs/how-to/site.md
round policy    !            use hushtable round show --policy NAME.policy.toml
round amend     open_:amend  Extend a round in a folder, or go on without a site.
round protect   !            encrypt the disk; for keys with a passphrase: round keygen --passphrase
round approve   show:approve    Sign a round as the officer whom a site's policy names.
round verify    show:verify  Check who signed a result, and whether it is the sum.
round rehearse  !            run hushtable demo, or copy docs/example-federation into a folder
round next      open_:next_  Open the round for the next period, or the one after a marginals round.
round compare   model:compare    Compare a site's rows with the other sites' counts in a result.
round ranges    ranges:ranges    Read plausible ranges from a result, with their uncertainty.
round model     model:model      Make the model that a site scores with from a result.
round secret    !            noise is what protects rows; draw the plan without a secret
"""
