"""How much of each class is out there: the prior estimators, one method one file."""
