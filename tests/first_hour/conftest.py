"""What the first hour starts with."""

import pytest

from monitor import Reference
from tests.first_hour.shop import Shop, shop


@pytest.fixture(scope="session")
def my_shop() -> Shop:
    return shop()


@pytest.fixture(scope="session")
def my_reference(my_shop: Shop) -> Reference:
    scores = my_shop.scores(my_shop.frame)
    return Reference.fit(scores, my_shop.labels, features=my_shop.frame, classes=my_shop.model.classes_)
