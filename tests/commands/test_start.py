"""How soon the command answers."""

import subprocess
import sys


def test_help_waits_for_no_scipy() -> None:
    code = "import sys; from monitor.commands.cli import parser; parser(); sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
