"""A round in a folder that all its parties can write to: a directory, or one far away by fsspec.

`mailbox` names the files and keeps them. It knows no key, no step and no deadline: whatever lies in
the folder is a stranger's until a signature says otherwise. `round_folder` reads what is there of
one round, `visits` are what a party does at a time, and `progress` says how far the round is.
"""
