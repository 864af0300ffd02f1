"""``python -m rivermouth`` is the command ``rivermouth``."""

from rivermouth.cli.app import main

if __name__ == "__main__":
    main()
