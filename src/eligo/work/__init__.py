"""The rules of doing work, without input, output or a clock: what a run on this machine and a server have in common."""
