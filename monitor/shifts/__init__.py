"""Which inputs moved, and how: tests against the reference and explanations of what they find."""
