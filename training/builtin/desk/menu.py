"""The menu of the app `order`, with the Japanese names and kinds of its articles, in drawing order."""

from collections.abc import Mapping
from types import MappingProxyType

from taiwa.kernel.serialization import value


@value
class Dish:
    """A menu item: name, Japanese name, kind, and price in dollars as the calculator reads it."""

    name: str
    japanese: str
    price: str
    kind: str


COFFEES = """espresso=エスプレッソ=2.4|ristretto=リストレット=2.4|lungo=ルンゴ=2.6|macchiato=マキアート=2.8|americano=アメリカーノ=3
|coffee=コーヒー=2.8|cold brew=水出しコーヒー=3.8|cortado=コルタード=3.4|cappuccino=カプチーノ=3.9|latte=ラテ=4.2
|latte macchiato=ラテマキアート=4.4|flat white=フラットホワイト=4|mocha=モカ=4.6|chai latte=チャイラテ=4.4|matcha latte=抹茶ラテ=4.8
|hojicha latte=ほうじ茶ラテ=4.8|hot chocolate=ホットチョコレート=4|milk=ミルク=2.2|affogato=アフォガート=4.8|frappe=フラッペ=4.8"""

TEAS = """tea=お茶=2.6|black tea=紅茶=2.6|green tea=緑茶=2.6|earl grey=アールグレイ=2.6|english breakfast tea=イングリッシュブレックファスト=2.6
|oolong tea=ウーロン茶=2.6|jasmine tea=ジャスミンティー=2.6|hojicha=ほうじ茶=2.6|peppermint tea=ペパーミントティー=2.6
|chamomile tea=カモミールティー=2.6|rooibos tea=ルイボスティー=2.6|lemon tea=レモンティー=2.6|ginger tea=ジンジャーティー=2.6
|herbal tea=ハーブティー=2.6|iced tea=アイスティー=3.2"""

COLD = """lemonade=レモネード=3.4|orange juice=オレンジジュース=3.6|apple juice=りんごジュース=3.6|grapefruit juice=グレープフルーツジュース=3.6
|tomato juice=トマトジュース=3.6|smoothie=スムージー=5.2|cola=コーラ=2.8|ginger ale=ジンジャーエール=2.8|water=水=1.8
|sparkling water=炭酸水=2"""

MUFFINS = """muffin=マフィン=3.2|blueberry muffin=ブルーベリーマフィン=3.2|chocolate muffin=チョコマフィン=3.2|banana muffin=バナナマフィン=3.2
|apple bran muffin=アップルブランマフィン=3.2|lemon poppyseed muffin=レモンポピーシードマフィン=3.2|carrot muffin=キャロットマフィン=3.2
|pumpkin muffin=パンプキンマフィン=3.2|corn muffin=コーンマフィン=3.2"""

BAKED = """bagel=ベーグル=2.8|croissant=クロワッサン=2.8|chocolate croissant=チョコクロワッサン=3.2|almond croissant=アーモンドクロワッサン=3.2
|toast=トースト=2.4|scone=スコーン=2.8|english muffin=イングリッシュマフィン=2.4|pretzel=プレッツェル=2.4|waffle=ワッフル=4.4|pancakes=パンケーキ=5.2"""

SWEETS = """cookie=クッキー=2.2|chocolate chip cookie=チョコチップクッキー=2.2|oatmeal cookie=オートミールクッキー=2.2|brownie=ブラウニー=2.8
|doughnut=ドーナツ=2.4|cinnamon roll=シナモンロール=3.2|danish=デニッシュ=3.2|banana bread=バナナブレッド=3.2|cake=ケーキ=4.4
|chocolate cake=チョコレートケーキ=4.4|carrot cake=キャロットケーキ=4.4|cheesecake=チーズケーキ=4.4|lemon cake=レモンケーキ=4.4|apple pie=アップルパイ=4.4
|ice cream=アイスクリーム=3.2|yogurt=ヨーグルト=3.2"""

SANDWICHES = """sandwich=サンドイッチ=5.4|cheese sandwich=チーズサンド=5.4|ham sandwich=ハムサンド=5.4|ham and cheese sandwich=ハムチーズサンド=5.4
|egg sandwich=たまごサンド=5.4|tuna sandwich=ツナサンド=5.4|chicken sandwich=チキンサンド=5.4|avocado toast=アボカドトースト=5.4"""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "coffee": COFFEES, "tea": TEAS, "cold": COLD, "muffin": MUFFINS, "baked": BAKED, "sweet": SWEETS, "sandwich": SANDWICHES,
    }
)  # fmt: skip


def _dishes(kind: str, text: str) -> tuple[Dish, ...]:
    entries = (entry.split("=") for entry in text.replace("\n", "").split("|"))
    return tuple(Dish(name, japanese, price, kind) for name, japanese, price in entries)


DISHES = tuple(dish for kind, text in KINDS.items() for dish in _dishes(kind, text))

MENU: Mapping[str, Dish] = MappingProxyType({dish.name: dish for dish in DISHES})
