"""The command that this package adds."""

COMMANDS = """
export          export             Write a model for another runtime: ONNX, SQL or JSON.
"""
