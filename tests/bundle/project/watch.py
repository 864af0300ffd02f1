"""Watches for those to greet: a script, uploaded as it is."""

import sys

print("watching for", *sys.argv[1:])
