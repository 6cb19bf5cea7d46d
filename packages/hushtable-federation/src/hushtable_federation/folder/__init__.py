"""A round in a folder that all its parties can write to: a directory, or one far away by fsspec.

`store` names the files and keeps them, in a `directory` or `remote`. It knows no key, no step and
no deadline: whatever lies in the folder is a stranger's until a signature says otherwise.
`progress` says how far a round is, to whoever can read the folder; `rehearsal` plays one, with its
`cast`. May import all of `hushtable_federation` but `hushtable_federation.flower`. Tested by
``tests/test_store.py`` and ``test_progress.py``.
"""
