"""Words beside a number that say what it counts: `20 dollars`, `45 mins`, `$5/hour`, `500円`.

They are a closed list. Any other word may be an unknown or a number (`2 dozen`, `5 million`), and is never skipped.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CURRENCIES", "LABEL", "label"]

CURRENCIES = "$€£¥₹₩"
# Words of one line count the same thing; single letters are left to unknowns.
WRITTEN = """
$ dollar dollars usd buck bucks
€ euro euros eur
£ gbp
¥ yen jpy 円 元 yuan rmb cny
₹ rupee rupees inr
₩ won krw
¢ cent cents
penny pennies
second seconds sec secs 秒
minute minutes min mins 分 分钟 分鐘
hour hours hr hrs 時間 小时 小時
day days 日 日間 天
week weeks 週間 周
month months か月 ヶ月 个月 個月
year years yr yrs 年 年間
mile miles
km kilometer kilometers kilometre kilometres キロ 公里
meter meters metre metres メートル 米
cm centimeter centimeters centimetre centimetres センチ 厘米
mm millimeter millimeters millimetre millimetres
foot feet ft
inch inches
yard yards yd yds
mph
kg kilogram kilograms 公斤
gram grams グラム 克
mg milligram milligrams
pound pounds lb lbs
ounce ounces oz
ton tons
tonne tonnes
liter liters litre litres リットル 升
ml milliliter milliliters millilitre millilitres
gallon gallons gal
quart quarts
pint pints
cup cups
mol mole moles
person persons people 人
student students
child children kid kids
man men
woman women
adult adults
item items 個 个
piece pieces
unit units
box boxes 箱
bag bags 袋
pack packs
package packages
case cases
bottle bottles 瓶
can cans
本
book books 冊
page pages ページ 页
ticket tickets
枚
张 張
匹
台
回
point points 点
"""
WORDS: Mapping[str, str] = MappingProxyType(
    {word: line.split()[0] for line in WRITTEN.strip().splitlines() for word in line.split()}
)
LABEL = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
"""The pattern of a label, to be matched without regard to case."""


def label(word: str) -> str:
    """The one name of what a word counts.

    >>> label("mins"), label("円")
    ('minute', '¥')
    """
    return WORDS[word.lower()]
