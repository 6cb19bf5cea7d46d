"""What rounds use of pyca/cryptography, in one place: no primitive here is our own."""
