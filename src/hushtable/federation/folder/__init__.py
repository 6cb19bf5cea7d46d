"""A round in a folder that all its parties can write to: a directory, or one far away by fsspec.

`store` names the files and keeps them, in a `directory` or `remote`. It knows no key, no step and
no deadline: whatever lies in the folder is a stranger's until a signature says otherwise. May
import ``far``, ``files`` and `hushtable.federation.keys`. Tested by
``tests/federation/test_store.py``.
"""
