"""The five papers again: what each claims, what is found here, and why where it does not hold."""
