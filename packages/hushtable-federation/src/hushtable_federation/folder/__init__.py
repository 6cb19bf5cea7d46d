"""A round in a folder that all its parties can write to: a directory, or a remote one by fsspec.

`mailbox` names and stores the files. It knows no key, no step and no deadline: every file in the
folder is untrusted until a signature is checked. `round_folder` reads the files of one round.
"""
