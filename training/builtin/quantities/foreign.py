"""Sentences in languages that the task `solve` does not support."""

from random import Random

__all__ = ["sentence"]

PATTERNS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("{0}{1}", (("おはようございます", "こんにちは", "こんばんは", "ありがとう", "元気ですか", "はじめまして", "おやすみ", "さようなら", "了解です", "疲れました"), ("。", "!", "", "、元気?", "。よろしくお願いします"))),
    ("{0}{1}", (("東京", "京都", "富士山", "猫", "明日の天気", "おすすめの映画", "日本の歴史", "俳句", "ラーメン", "あなたの名前", "好きな食べ物", "この言葉の意味"), ("について教えて", "は何ですか", "はどこですか", "が知りたい", "を説明してください", "の話をして", "はどう思いますか"))),
    ("{0}{1}", (("你好", "早上好", "谢谢", "再见", "你是谁", "你会做什么", "今天天气怎么样", "给我讲个笑话", "我很累", "请帮帮我"), ("。", "!", "?", "", ",朋友"))),
    ("{0}{1}", (("北京", "长城", "红楼梦", "人工智能", "春节", "咖啡", "篮球", "唐诗", "量子力学", "我的家乡"), ("是什么?", "在哪里?", "怎么样?", "的历史是什么?", "好吗?", "介绍一下"))),
    ("{0} {1}", (("¿Cómo estás", "¿Quién eres", "Hola, buenos días", "¿Qué tiempo hace", "Cuéntame un chiste", "¿Dónde está la estación", "Escribe un poema sobre", "¿Qué opinas de", "Explícame"), ("hoy?", "amigo?", "el mar", "la luna", "mi perro", "la historia de España", "el fútbol"))),
    ("{0} {1}", (("Un tren recorre", "María tiene", "Compro", "¿Cuánto cuestan", "¿Cuántos son"), ("120 km en 2 horas. ¿A qué velocidad va?", "8 manzanas y regala 3. ¿Cuántas quedan?", "4 libros a 7 euros.", "5 kilos de arroz?", "la mitad de 30?"))),
    ("{0} {1}", (("Bonjour, comment", "Qui est", "Raconte-moi", "Écris un poème sur", "Quelle est la capitale de", "Où se trouve", "Que penses-tu de", "Explique-moi"), ("allez-vous?", "le roi de France?", "une histoire", "la mer", "l'Italie?", "la gare?", "la musique", "la photosynthèse"))),
    ("{0} {1}", (("Une voiture roule à 90 km/h", "Paul achète 3 pommes", "Il y a 24 élèves", "Combien font"), ("pendant 2 heures. Quelle distance parcourt-elle?", "à 2 euros. Combien paie-t-il?", "et 6 sont absents.", "7 fois 8?"))),
    ("{0} {1}", (("Guten Morgen, wie", "Wer ist", "Erzähl mir", "Schreib ein Gedicht über", "Was ist die Hauptstadt von", "Wo liegt", "Was hältst du von", "Erkläre mir"), ("geht es dir?", "der Kanzler?", "einen Witz", "den Herbst", "Polen?", "der Bodensee?", "diesem Film?", "die Relativität"))),
    ("{0} {1}", (("Ein Zug fährt 80 km/h", "Anna hat 15 Murmeln", "Drei Brote kosten 9 Euro", "Wie viel ist"), ("und braucht 3 Stunden. Wie weit fährt er?", "und verliert 4. Wie viele bleiben?", "- was kostet eines?", "die Hälfte von 50?"))),
    ("{0} {1}", (("Olá, tudo", "Ciao, come", "Привет, как", "Hej, hur", "Merhaba, nasıl", "안녕하세요", "สวัสดี", "नमस्ते", "مرحبا", "Halo, apa", "Xin chào", "Cześć, jak"), ("bem?", "stai?", "дела?", "mår du?", "gidiyor?", "잘 지내요?", "ครับ", "दोस्त", "يا صديقي", "kabar?", "bạn khỏe không?", "leci?"))),
)  # fmt: skip
"""Parts that can follow each other in a language; not every pair is meaningful."""


def sentence(random: Random) -> str:
    """Return a sentence in Japanese, Chinese, Spanish, French, German or another language."""
    pattern, parts = random.choice(PATTERNS)
    text = pattern.format(*(random.choice(part) for part in parts))
    if random.random() < 0.25:
        pattern, parts = random.choice(PATTERNS)
        text += " " + pattern.format(*(random.choice(part) for part in parts))
    return text
