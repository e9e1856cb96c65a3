"""Claims about sentences of invented documents in three languages: right ones, false ones, and right ones in other words.

A right claim repeats its sentence with other spellings, numbers, inflections or function words. A false one has another subject,
number, unit, date or time, or says the opposite in a word or by a negation. A reworded one is right, but only understanding tells.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """A sentence under a heading, and claims about it."""

    heading: str
    sentence: str
    right: tuple[str, ...]
    false: tuple[str, ...]
    reworded: tuple[str, ...] = ()


PAIRS = (
    Pair("Harbour pool", "The pool is closed on Tuesdays, except in August.",
         ("The pool is closed on Tuesdays.", "The pool's closed on Tuesday, except in August", "Harbour pool: the pool was closed on Tuesdays"),
         ("The pool is open on Tuesdays.", "The pool is not closed on Tuesdays.", "The pool is closed on Thursdays.", "The sauna is closed on Tuesdays.", "The pool is closed."),
         ("The pool is not open on Tuesdays.", "You cannot swim there on a Tuesday.")),
    Pair("Library › Late fees", "The late fee is 20 cents per item and day.",
         ("The late fee is 20 cents per item and day.", "Late fees are twenty cents per item and day.", "A late fee of 20 cents per item and day"),
         ("A library card costs 20 cents per item and day.", "The late fee is 20 euros per item and day.", "The late fee is 25 cents per item and day.", "The late fee is 20 cents per item and week.", "There is no late fee of 20 cents per item and day.", "The library is 20 cents per item and day.", "20 cents per item"),
         ("Returning a book late costs 20 cents a day.",)),
    Pair("Allotments", "Tenants over 70 are exempt from the water charge of £35 a year.",
         ("Tenants over 70 are exempt from the water charge of 35 pounds a year.", "A tenant over seventy is exempt from the water charge of £35 a year."),
         ("Tenants over 70 pay the water charge of £35 a year.", "Tenants under 70 are exempt from the water charge of £35 a year.", "Tenants over 70 are exempt from the water charge of $35 a year.", "Tenants over 70 are not exempt from the water charge of £35 a year.", "Tenants over 17 are exempt from the water charge of £35 a year.", "Members over 70 are exempt from the water charge of £35 a year.", "The water charge is £35 a month."),
         ("Older tenants need not pay for water.",)),
    Pair("Ferry", "From 1 May the last boat to Orrin leaves at 21:40; dogs travel free.",
         ("From 1 May the last boat to Orrin leaves at 21:40.", "Dogs travel free.", "A dog travels free."),
         ("From 1 May the first boat to Orrin leaves at 21:40.", "From 1 June the last boat to Orrin leaves at 21:40.", "From 1 May the last boat to Orrin leaves at 20:40.", "Until 1 May the last boat to Orrin leaves at 21:40.", "From 1 May the last boat from Orrin leaves at 21:40.", "Cats travel free.", "Dogs do not travel free.", "From 1 May the last bus to Orrin leaves at 21:40."),
         ("Dogs cost nothing.",)),
    Pair("Keys", "Ann Whitlow keeps the keys of the workshop, and Bo Larsen those of the archive.",
         ("Ann Whitlow keeps the keys of the workshop.", "Ann Whitlow keeps the keys to the workshop, and Bo Larsen those of the archive."),
         ("Bo Larsen keeps the keys of the workshop.", "Ann Whitlow keeps the keys of the archive.", "Ann Whitlow, and Bo Larsen those of the workshop.", "Ann Whitlow keeps no keys of the workshop.", "Ann Whitlow loses the keys of the workshop."),
         ("The archive's keys are with Bo Larsen.",)),
    Pair("Grants › Deadline", "Applications must be sent within six weeks of the event.",
         ("Applications must be sent within 6 weeks of the event.", "The application must be sent within six weeks of an event.", "Grant applications must be sent within six weeks of the event."),
         ("Applications must be sent within six days of the event.", "Applications must be sent within sixteen weeks of the event.", "Applications must not be sent within six weeks of the event.", "Complaints must be sent within six weeks of the event.", "Applications must be paid within six weeks of the event."),
         ("You have six weeks after the event to apply.",)),
    Pair("市民プール › 料金", "65歳以上の市民は、入場料500円が免除されます。",
         ("65歳以上の市民は、入場料500円が免除されます。", "六十五歳以上の市民は入場料500円が免除される", "65歳以上の市民は、入場料五百円を免除されます。"),
         ("65歳以上の市民は、入場料500円が必要です。", "65歳以下の市民は、入場料500円が免除されます。", "56歳以上の市民は、入場料500円が免除されます。", "65歳以上の市民は、入場料500円が免除されません。", "65歳以上の観光客は、入場料500円が免除されます。", "65歳以上の市民は、入場料500ドルが免除されます。", "入場料500円"),
         ("お年寄りの市民は無料で入れます。",)),
    Pair("バス", "雪の日は、山の上の駅まで行くバスが運休します。",
         ("雪の日は、山の上の駅まで行くバスが運休します。", "雪の日は山の上の駅まで行くバスは運休する"),
         ("雪の日は、山の上の駅まで行くバスが運行します。", "雨の日は、山の上の駅まで行くバスが運休します。", "雪の日は、山の上の駅から行くバスが運休します。", "雪の日は、山の上の駅まで行く電車が運休します。", "雪の日は、山の上の駅まで行くバスが運休しません。"),
         ("雪が降ると山の上までバスは走りません。",)),
    Pair("図書室", "本は二週間借りられますが、雑誌は借りられません。",
         ("本は二週間借りられますが、雑誌は借りられません。", "本は2週間借りられますが、雑誌は借りられない"),
         ("本は三週間借りられますが、雑誌は借りられません。", "本は二か月借りられますが、雑誌は借りられません。", "本は二週間借りられますが、雑誌も借りられます。", "雑誌は二週間借りられます。", "本は二週間借りられません。", "本は借りられません。"),
         ("雑誌の貸し出しはしていません。",)),
    Pair("会議室", "会議室の鍵は、午後6時までに高木さんに返してください。",
         ("会議室の鍵は午後6時までに高木さんに返してください。", "会議室の鍵は、午後六時までに高木さんに返す"),
         ("会議室の鍵は、午前6時までに高木さんに返してください。", "会議室の鍵は、午後6時から高木さんに返してください。", "会議室の鍵は、午後7時までに高木さんに返してください。", "会議室の鍵は、午後6時までに鈴木さんに返してください。", "倉庫の鍵は、午後6時までに高木さんに返してください。"),
         ("鍵を返す相手は高木さんです。",)),
    Pair("猫カフェ › りんご店", "りんごのケーキは4月3日に売り切れました。",
         ("りんごのケーキは四月三日に売り切れました。", "りんごのケーキは4月3日に売り切れた"),
         ("みかんのケーキは4月3日に売り切れました。", "りんごのケーキは3月4日に売り切れました。", "りんごのケーキは4月3日に売り切れませんでした。", "りんごのケーキは4月3日に売り出されました。"),
         ("四月四日にはりんごのケーキがなかった。",)),
    Pair("游泳馆 › 开放时间", "儿童池每周三关闭，成人池全年开放。",
         ("儿童池每周三关闭。", "儿童池是每周三关闭的，成人池全年开放"),
         ("儿童池每周三开放。", "儿童池每周三不关闭。", "儿童池每周四关闭。", "成人池每周三关闭。", "游泳馆每周三关闭。", "儿童池每月三关闭。"),
         ("周三不能去儿童池。",)),
    Pair("停车", "访客停车前两小时免费，之后每小时收费8元。",
         ("访客停车前两小时免费。", "访客停车前2小时免费，之后每小时收费八元"),
         ("访客停车前两小时收费。", "员工停车前两小时免费。", "访客停车前三小时免费。", "访客停车前两天免费。", "访客停车前两小时不免费。", "访客停车前两小时免费，之后每小时收费8美元。", "访客停车前两小时免费，之后每小时收费18元。"),
         ("停车不到两小时不用付钱。",)),
    Pair("实验室", "未满十八岁的学生不得单独使用激光机。",
         ("未满18岁的学生不得单独使用激光机。",),
         ("未满十八岁的学生可以单独使用激光机。", "未满十八岁的学生得单独使用激光机。", "已满十八岁的学生不得单独使用激光机。", "未满八岁的学生不得单独使用激光机。", "未满十八岁的教师不得单独使用激光机。"),
         ("十七岁的学生用激光机要有人陪同。",)),
)  # fmt: skip
