# One type: as a model sees it, read from what a model wrote, and asked for.
#== read
cat > shop.py <<'END'
from dataclasses import dataclass
from typing import Literal


@dataclass
class Order:
    drink: Literal["tea", "coffee"]
    size: int
END
taiwa schema shop:Order
echo "Sure! {drink: 'tea', 'size': 2,}" | taiwa parse - --type shop:Order -v
#== inline
echo "Sure! {drink: 'tea', 'size': 2,}" | taiwa parse - --type "drink, size int" -v
#== extract
#> {"drink": "tea", "size": "two"}
#> {"drink": "tea", "size": 2}
taiwa extract shop:Order "Tea, size two." -v
