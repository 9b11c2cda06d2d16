"""`python -m monitor` is the same as `shiftwatch`."""

import sys

from monitor.cli import main

sys.exit(main())
