"""Every error that Shiftwatch raises on purpose.

ShiftwatchError
├── ConfigurationError   the configuration cannot be run; carries every problem found
├── ArtefactError        a reference file is truncated, tampered with, or from a newer version
├── InputError           arrays or parameters handed to a function make no sense (also a ValueError)
├── ConnectorError       a source or sink cannot go on
│   ├── OutageError          the other side does not answer: opened anew later, it may
│   └── CommitRefusedError   the partitions have moved to another member: begin again where the source says
├── WorkerError          the process that assesses windows cannot go on
└── DeadLetterLimitError too many records were rejected: somebody should look before more are thrown away
"""

from collections.abc import Sequence


class ShiftwatchError(Exception):
    """Base of every error that Shiftwatch raises on purpose."""


class ConfigurationError(ShiftwatchError):
    """The configuration cannot be run."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class ArtefactError(ShiftwatchError):
    """A reference file cannot be trusted."""


class InputError(ShiftwatchError, ValueError):
    """Arrays or parameters that make no sense: the message names the thing, the rule and what was got."""


class ConnectorError(ShiftwatchError):
    """A source or a sink cannot go on."""


class OutageError(ConnectorError):
    """The other side of a source or a sink does not answer. What was not committed is read again once it does."""


class CommitRefusedError(ConnectorError):
    """Nothing was published: the partitions may belong to another member now. Not a failure, a turn of the loop."""


class WorkerError(ShiftwatchError):
    """A window could not be assessed beside the loop."""


class DeadLetterLimitError(ShiftwatchError):
    """Too many records were rejected in a row or in proportion."""
