"""The rules of the server: no input or output, time passed in, and every change given out to be kept."""
