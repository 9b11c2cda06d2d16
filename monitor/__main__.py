"""`python -m monitor` is the same as `shiftwatch`."""

import sys

from monitor.commands.cli import main

sys.exit(main())
