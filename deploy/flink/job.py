"""What `flink run -py` and the operator of Kubernetes start: the job of a configuration, with the arguments of
`shiftwatch flink submit`."""

import sys

from monitor.commands.cli import main

code = main(["flink", "submit", *sys.argv[1:]])
if code:  # Flink takes any exit, also a good one, for a failure
    sys.exit(code)
