"""The Japanese words of the order app: dishes, sizes, extras, and their forms before and after a noun."""

from collections.abc import Mapping
from typing import TypeAlias

__all__ = ["ADDED", "NOUNS", "SHOWN", "SIZE_WORDS", "STANDS"]

Forms: TypeAlias = tuple[str, ...]


def _table(text: str) -> dict[str, Forms]:
    """Parse `name=form/form` entries separated by bars."""
    entries = (entry.partition("=") for entry in text.replace("\n", "").split("|"))
    return {name: tuple(forms.split("/")) for name, _, forms in entries}


NOUNS: Mapping[str, Forms] = _table(
    """espresso=エスプレッソ/エスプレッソコーヒー/エスプレソ|ristretto=リストレット/リストレト|lungo=ルンゴ/エスプレッソルンゴ|macchiato=マキアート/エスプレッソマキアート/マッキアート
|americano=アメリカーノ/カフェアメリカーノ/アメリカンコーヒー/アメリカン|coffee=コーヒー/珈琲/ドリップコーヒー/ブレンド/ブレンドコーヒー|cold brew=水出しコーヒー/コールドブリュー/コールドブリューコーヒー/水出し珈琲
|cortado=コルタード/コルタド|cappuccino=カプチーノ/カプチノ/カプチーノコーヒー|latte=ラテ/カフェラテ/カフェ・ラテ/カフェラッテ|latte macchiato=ラテマキアート/ラテ・マキアート/ラテマッキアート
|flat white=フラットホワイト/フラット・ホワイト|mocha=モカ/カフェモカ/モカコーヒー|chai latte=チャイラテ/チャイティーラテ/チャイ/チャイティー|matcha latte=抹茶ラテ/抹茶オレ/抹茶ティーラテ
|hojicha latte=ほうじ茶ラテ/ほうじ茶ティーラテ|hot chocolate=ホットチョコレート/ココア/ホットココア/ホットチョコ|milk=ミルク/牛乳|affogato=アフォガート/アッフォガート|frappe=フラッペ/フラペ
|tea=お茶/ティー|black tea=紅茶/ブラックティー/ストレートティー|green tea=緑茶/煎茶/グリーンティー|earl grey=アールグレイ/アールグレイティー|english breakfast tea=イングリッシュブレックファスト/イングリッシュブレックファストティー/ブレックファストティー
|oolong tea=ウーロン茶/烏龍茶|jasmine tea=ジャスミンティー/ジャスミン茶|hojicha=ほうじ茶/焙じ茶|peppermint tea=ペパーミントティー/ミントティー|chamomile tea=カモミールティー/カモミール|rooibos tea=ルイボスティー/ルイボス
|lemon tea=レモンティー|ginger tea=ジンジャーティー/生姜茶|herbal tea=ハーブティー|iced tea=アイスティー/冷たい紅茶|lemonade=レモネード/レモンスカッシュ|orange juice=オレンジジュース/オレンジ・ジュース
|apple juice=りんごジュース/アップルジュース/リンゴジュース|grapefruit juice=グレープフルーツジュース/グレフルジュース|tomato juice=トマトジュース|smoothie=スムージー/フルーツスムージー|cola=コーラ/コカコーラ
|ginger ale=ジンジャーエール/ジンジャエール|water=水/お水/お冷/ミネラルウォーター|sparkling water=炭酸水/スパークリングウォーター/ソーダ水|muffin=マフィン/プレーンマフィン|blueberry muffin=ブルーベリーマフィン/ブルーベリーのマフィン
|chocolate muffin=チョコマフィン/チョコレートマフィン/チョコチップマフィン|banana muffin=バナナマフィン/バナナのマフィン|apple bran muffin=アップルブランマフィン/りんごのマフィン/ブランマフィン|lemon poppyseed muffin=レモンポピーシードマフィン/レモンマフィン/ポピーシードマフィン
|carrot muffin=キャロットマフィン/にんじんマフィン|pumpkin muffin=パンプキンマフィン/かぼちゃマフィン|corn muffin=コーンマフィン/とうもろこしマフィン|bagel=ベーグル/ベーグルパン|croissant=クロワッサン/クロワッサンパン
|chocolate croissant=チョコクロワッサン/チョコレートクロワッサン/パンオショコラ|almond croissant=アーモンドクロワッサン|toast=トースト/食パン|scone=スコーン/プレーンスコーン|english muffin=イングリッシュマフィン|pretzel=プレッツェル
|waffle=ワッフル/ベルギーワッフル|pancakes=パンケーキ/ホットケーキ|cookie=クッキー/ビスケット|chocolate chip cookie=チョコチップクッキー/チョコクッキー|oatmeal cookie=オートミールクッキー|brownie=ブラウニー/チョコブラウニー
|doughnut=ドーナツ/ドーナッツ|cinnamon roll=シナモンロール|danish=デニッシュ/フルーツデニッシュ|banana bread=バナナブレッド/バナナケーキ|cake=ケーキ/本日のケーキ|chocolate cake=チョコレートケーキ/チョコケーキ/ガトーショコラ
|carrot cake=キャロットケーキ/にんじんケーキ|cheesecake=チーズケーキ/ベイクドチーズケーキ|lemon cake=レモンケーキ|apple pie=アップルパイ/りんごのパイ|ice cream=アイスクリーム/バニラアイス|yogurt=ヨーグルト
|sandwich=サンドイッチ/サンド/サンドウィッチ|cheese sandwich=チーズサンド/チーズサンドイッチ/ホットチーズサンド|ham sandwich=ハムサンド/ハムサンドイッチ|ham and cheese sandwich=ハムチーズサンド/ハムとチーズのサンドイッチ
|egg sandwich=たまごサンド/卵サンド/玉子サンド/タマゴサンド|tuna sandwich=ツナサンド/ツナサンドイッチ|chicken sandwich=チキンサンド/チキンサンドイッチ|avocado toast=アボカドトースト/アボカドのトースト"""
)

SIZE_WORDS: Mapping[str, Forms] = _table(
    """short=ショート/ショートサイズ|small=スモール/Sサイズ/S/小さい/小/スモールサイズ|tall=トール/トールサイズ|medium=ミディアム/Mサイズ/M/中くらい/中|regular=レギュラー/レギュラーサイズ/普通サイズ
|grande=グランデ/グランデサイズ|large=ラージ/Lサイズ/L/大きい/大/ラージサイズ|venti=ベンティ/ヴェンティ/ベンティサイズ|trenta=トレンタ|mini=ミニ/ミニサイズ|extra-large=特大/LLサイズ/エクストララージ/XL
|solo=ソロ|single=シングル|doppio=ドッピオ/ドピオ|double=ダブル/ダブルサイズ|triple=トリプル|quad=クアッド/クワッド"""
)

ADDED: Mapping[str, Forms] = _table(
    """whole milk=全乳/普通の牛乳/成分無調整牛乳|2% milk=2%ミルク/2パーセントミルク/2%の牛乳|1% milk=1%ミルク/1パーセントミルク|low-fat milk=低脂肪乳/ローファットミルク/低脂肪ミルク|nonfat milk=無脂肪乳/ノンファットミルク/無脂肪ミルク/スキムミルク
|oat milk=オーツミルク/オートミルク/オーツ|soy milk=豆乳/ソイミルク/ソイ|almond milk=アーモンドミルク/アーモンド|coconut milk=ココナッツミルク/ココナッツ|rice milk=ライスミルク|lactose-free milk=ラクトースフリーミルク/乳糖フリーの牛乳
|creamer=クリーマー/コーヒークリーム|whole milk creamer=全乳クリーマー|2% creamer=2%クリーマー|1% creamer=1%クリーマー|nonfat creamer=無脂肪クリーマー|oat creamer=オーツクリーマー|soy creamer=豆乳クリーマー|almond creamer=アーモンドクリーマー|coconut creamer=ココナッツクリーマー
|vanilla syrup=バニラ|sugar-free vanilla syrup=シュガーフリーバニラ/無糖バニラ|caramel syrup=キャラメル|hazelnut syrup=ヘーゼルナッツ|peppermint syrup=ペパーミント/ミント|raspberry syrup=ラズベリー/木いちご|cinnamon syrup=シナモン|toffee syrup=トフィー
|almond syrup=アーモンド|orange syrup=オレンジ|buttered rum syrup=バターラム|chocolate syrup=チョコレート/チョコ|white chocolate syrup=ホワイトチョコレート/ホワイトチョコ|strawberry syrup=ストロベリー/いちご|coconut syrup=ココナッツ|maple syrup=メープル
|gingerbread syrup=ジンジャーブレッド|pumpkin spice syrup=パンプキンスパイス|lavender syrup=ラベンダー|rose syrup=ローズ/バラ|irish cream syrup=アイリッシュクリーム|brown sugar syrup=黒糖/ブラウンシュガー|cherry syrup=チェリー/さくらんぼ|peach syrup=ピーチ/桃
|sugar=砂糖/お砂糖/シュガー|brown sugar=ブラウンシュガー/黒砂糖|sugar in the raw=粗糖/ロウシュガー/きび砂糖|honey=はちみつ/ハチミツ/蜂蜜/ハニー|equal=イコール|splenda=スプレンダ|sweet n low=スイートンロー|stevia=ステビア|truvia=トゥルビア|agave=アガベ/アガベシロップ|sweetener=甘味料/人工甘味料/ダイエットシュガー
|milk=ミルク/牛乳|cream=クリーム|half and half=ハーフアンドハーフ|heavy cream=生クリーム/濃いクリーム|foam=泡/フォーム/ミルクフォーム|ice=氷|whipped cream=ホイップクリーム/ホイップ|cinnamon=シナモンパウダー/シナモン|nutmeg=ナツメグ|cocoa=ココアパウダー|sprinkles=スプリンクル/チョコスプレー
|marshmallows=マシュマロ|caramel sauce=キャラメルソース|chocolate sauce=チョコレートソース/チョコソース|water=水/お湯|salt=塩|lemon=レモン/レモンスライス|mint=ミントの葉/ミント|ginger=生姜/しょうが|espresso shot=エスプレッソショット/ショット
|butter=バター|cream cheese=クリームチーズ|jam=ジャム|strawberry jam=いちごジャム/ストロベリージャム|peanut butter=ピーナッツバター|chocolate spread=チョコスプレッド/チョコクリーム|cheese=チーズ|ham=ハム|egg=卵/たまご|bacon=ベーコン|tomato=トマト|lettuce=レタス|onion=玉ねぎ/オニオン|pickles=ピクルス
|mayonnaise=マヨネーズ/マヨ|mustard=マスタード/からし"""
)
"""Extras; flavours are written without the word for syrup."""

STANDS: Mapping[str, tuple[Forms, Forms]] = {
    "iced": (("アイス", "アイスの", "冷たい"), ("アイスで", "冷たいので", "氷を入れて冷たくして", "アイスにして")),
    "hot": (("ホット", "ホットの", "温かい", "あったかい"), ("ホットで", "温かいので", "ホットにして")),
    "extra hot": (("熱々の", "熱めの", "エクストラホットの"), ("熱々で", "熱めで", "熱めにして", "エクストラホットで")), "warm": (("ぬるめではなく温かめの", "温かめの", "ほどよく温かい"), ("温かめで", "熱すぎない温かさで")),
    "lukewarm": (("ぬるい", "ぬるめの"), ("ぬるめで", "ぬるくして")), "decaf": (("デカフェの", "デカフェ", "カフェインレスの", "カフェイン抜きの"), ("デカフェで", "カフェインレスで", "カフェイン抜きで", "ディカフェで")),
    "half caf": (("ハーフカフェの", "カフェイン半分の"), ("ハーフカフェで", "カフェイン半分で")), "one third caf": (("カフェイン3分の1の",), ("カフェイン3分の1で", "カフェイン三分の一で")),
    "two thirds caf": (("カフェイン3分の2の",), ("カフェイン3分の2で", "カフェイン三分の二で")), "strong": (("濃いめの", "濃い"), ("濃いめで", "濃くして")), "weak": (("薄めの", "薄い"), ("薄めで", "薄くして")),
    "dry": (("ドライの", "ドライ"), ("ドライで",)), "wet": (("ウェットの", "ウェット"), ("ウェットで",)), "black": (("ブラック", "ブラックの"), ("ブラックで",)), "unsweetened": (("甘くない", "無加糖の"), ("甘くしないで", "無加糖で")), "blended": (("ブレンダーにかけた",), ("ブレンダーにかけて",)),
    "to go": (("持ち帰りの", "テイクアウトの", "お持ち帰りの"), ("持ち帰りで", "テイクアウトで", "お持ち帰りで", "持って帰ります")), "for here": (("店内用の",), ("店内で", "ここで飲みます", "イートインで", "こちらでいただきます")),
    "with room": (("余裕を残した",), ("少し余裕を残して", "上を少し空けて", "スペースを空けて")), "lid": (("蓋付きの", "ふた付きの"), ("蓋付きで", "ふたをつけて", "蓋をして")), "no lid": (("蓋なしの", "ふたなしの"), ("蓋なしで", "ふたはいりません", "蓋は要らないです")),
    "straw": (("ストロー付きの",), ("ストロー付きで", "ストローもつけて")), "no straw": (("ストローなしの",), ("ストローなしで", "ストローはいりません")), "warmed": (("温めた", "あたためた"), ("温めて", "あたためて", "温めてもらって", "チンして")),
    "toasted": (("トーストした", "焼いた"), ("トーストして", "焼いて", "軽く焼いて")), "cut in half": (("半分に切った", "半分にカットした"), ("半分に切って", "半分にカットして", "二つに切って", "半分こにして")), "sliced": (("スライスした", "薄く切った"), ("スライスして", "薄く切って")),
    "gluten-free": (("グルテンフリーの",), ("グルテンフリーで",)), "vegan": (("ビーガンの", "ヴィーガンの"), ("ビーガンで",)), "plain": (("プレーンの", "プレーン"), ("プレーンで",)), "sesame": (("ごまの", "セサミ"), ("ごまで",)),
    "everything": (("エブリシング", "エブリシングの"), ("エブリシングで",)), "whole wheat": (("全粒粉の", "全粒粉"), ("全粒粉で",)),
}  # fmt: skip

SHOWN: Mapping[str, str] = {
    "iced": "アイス", "hot": "ホット", "extra hot": "熱め", "warm": "温かめ", "lukewarm": "ぬるめ", "decaf": "デカフェ", "half caf": "ハーフカフェ",
    "one third caf": "カフェイン3分の1", "two thirds caf": "カフェイン3分の2", "black": "ブラック", "strong": "濃いめ", "weak": "薄め", "dry": "ドライ",
    "wet": "ウェット", "unsweetened": "加糖なし", "blended": "ブレンド", "to go": "持ち帰り", "for here": "店内", "with room": "余裕あり", "lid": "蓋付き", "no lid": "蓋なし",
    "straw": "ストロー付き", "no straw": "ストローなし", "warmed": "温め", "toasted": "トースト", "cut in half": "半分にカット", "sliced": "スライス", "gluten-free": "グルテンフリー", "vegan": "ビーガン",
    "plain": "プレーン", "sesame": "ごま", "everything": "エブリシング", "whole wheat": "全粒粉",
}  # fmt: skip
"""Extras without an amount, as the replies name them."""
