"""What `taiwa demo` shows: commands in four parts, with what should come of them."""

from dataclasses import dataclass

from taiwa.cli.words import Texts

__all__ = ["ASKED_BACK", "PARTS", "Part", "Step"]

ASKED_BACK = 3
INSTRUCTION = "Solve the problem step by step. End with a line that states the answer; its number comes last."
"""What the flow of `taiwa solve` begins with: the built-in model knows by it what is wanted."""
FORMULA = r"((Ammonia|Ethanol|Glucose|Methane|Water) is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\."


@dataclass(frozen=True, slots=True)
class Step:
    """A command; `{said}` in it stands for what is said, which a person may replace.

    `shows` must occur in what it prints, and `code` is its exit code. A `reply` comes only where the step before it asked back.
    """

    about: Texts
    command: str
    said: str = ""
    shows: str = ""
    code: int = 0
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Steps that belong together, and the command to try next."""

    title: Texts
    steps: tuple[Step, ...]
    then: str


SOLVING = Part(
    (
        "Problems: the network writes, is interrupted where it calls a tool, and goes on behind the exact result.",
        "問題を解く: モデルが書き、道具を呼ぶところで中断され、正確な結果の後ろから続きを書きます。",
        "解题：网络书写，在调用工具处被打断，再接着精确的结果写下去。",
    ),
    (
        Step(
            (
                "Chemistry: the name becomes a formula, the formula a molar mass.",
                "化学: 名前が化学式に、化学式がモル質量になります。",
                "化学：名称变成化学式，化学式变成摩尔质量。",
            ),
            "taiwa solve {said}",
            "How many grams do 3 moles of sulfuric acid weigh?",
            "294.2",
        ),
        Step(
            (
                "A reaction: which of the two is used up first?",
                "反応: 先になくなるのはどちらでしょう。",
                "反应：哪一种先用完？",
            ),
            "taiwa solve {said}",
            "4 mol of methane and 6 mol of oxygen react. How many moles of carbon dioxide are formed?",
            "answer is 3 mol",
        ),
        Step(
            ("Everyday life.", "日常の問題。", "日常问题。"),
            "taiwa solve {said}",
            "A train travels 210 km in 2.5 hours. What is its average speed in km/h?",
            "answer is 84 km/h",
        ),
    ),
    'taiwa solve "What is the mass percent of oxygen in water?" --trace',
)
DESK = Part(
    (
        "An order desk: a conversation with typed state. The network writes the reply and what changes, held to a grammar.",
        "注文の窓口: 型のある状態を持つ会話です。モデルは返事と変更点を、文法に縛られて書きます。",
        "点单台：带类型状态的对话。网络在语法约束下写出回答和变化的部分。",
    ),
    (
        Step(("A first order.", "最初の注文。", "第一单。"), "taiwa say order -s desk {said}", "Two grande lattes with oat milk, please."),
        Step(("A correction.", "訂正。", "更正。"), "taiwa say -s desk {said}", "Make that three, please."),
        Step(("In Japanese.", "日本語で。", "用日语。"), "taiwa say -s desk {said}", "あと、抹茶ラテを一つお願いします。"),
        Step(
            ("The state is data, checked by its type.", "状態は型で検査されたデータです。", "状态是按类型检查过的数据。"),
            "taiwa state -s desk",
            shows="matcha latte",
        ),
        Step(
            ("Every value has an author.", "どの値にも、決めた発話があります。", "每个值都有出处。"),
            "taiwa why items.1 -s desk",
            shows="set by turn 2",
        ),
        Step(
            (
                "Undo moves message and state together …",
                "取り消すと、発話と状態が一緒に戻ります……",
                "撤销时，话语和状态一起回退……",
            ),
            "taiwa undo -s desk",
            shows="2",
        ),
        Step(
            ("… a fork goes another way from there,", "……そこから枝分かれして、", "……从那里分出另一支，"),
            "taiwa fork desk other",
            shows="other",
        ),
        Step(
            ("where the guest is done; the sum is a tool's.", "ここで注文を終えます。合計は道具が計算します。", "在这里结束点单；总价由工具算出。"),
            "taiwa say -s other {said}",
            "That's everything, thank you.",
            "12.6",
        ),
        Step(
            ("The first way is still there.", "元の枝も残っています。", "原来的一支还在。"), "taiwa redo -s desk", shows="3"
        ),
        Step(
            ("Two branches, compared.", "二つの枝を比べます。", "比较两个分支。"),
            "taiwa diff desk other",
            shows='status: "open" → "confirmed"',
        ),
        Step(("Both histories.", "両方の履歴。", "两边的历史。"), "taiwa log --tree", shows="← other"),
        Step(
            (
                "All again from the records: no call, every hash checked.",
                "記録からの再現: モデルを呼ばず、すべてのハッシュを検証します。",
                "按记录重做：不调用模型，逐一校验哈希。",
            ),
            "taiwa replay desk",
            shows="0 model calls",
        ),
        Step(("The bill.", "明細。", "账单。"), "taiwa cost --by session", shows="desk"),
    ),
    "taiwa chat order",
)  # fmt: skip
ASKING = Part(
    (
        "Questions to documents: the network judges what is wanted; the program looks up, asks back, and quotes.",
        "文書への質問: 何が求められているかをモデルが判断し、プログラムが探し、聞き返し、引用します。",
        "向文件提问：网络判断想问什么；程序查找、反问、引用。",
    ),
    (
        Step(
            (
                "A question that lacks something: it asks back,",
                "情報の足りない質問には聞き返し、",
                "信息不足的问题：它反问，",
            ),
            "taiwa ask {said}",
            "I have a question about leave.",
            code=ASKED_BACK,
        ),
        Step(
            (
                "and the answer to that gets one with its source.",
                "それに答えると、出典つきで回答します。",
                "回答之后得到带出处的答案。",
            ),
            "taiwa ask -c {said}",
            "1",
            "[1]",
            reply=True,
        ),
        Step(
            ("A clear question is answered at once.", "はっきりした質問にはすぐ答えます。", "明确的问题立即回答。"),
            "taiwa ask {said}",
            "How many days of annual leave do I have in Galway?",
            "26",
        ),
    ),
    'taiwa ask "What may a hotel in Dublin cost a night?" -v     (your documents: --in FOLDER)',
)
HOLDING = Part(
    (
        "A constraint: at each place only tokens that can still lead to an allowed text are possible.",
        "制約: 許された文に至りうるトークンだけを、各位置で選べます。",
        "约束：在每个位置，只有还能通向允许文本的词元可选。",
    ),
    (
        Step(
            (
                "«Forced» tokens cost no run of the network; the formula is its own. (--system is the instruction that it knows.)",
                "«強制» されたトークンにモデルの計算は要りません。化学式はモデルが書きます（--system はモデルが知っている指示です）。",
                "«强制»的词元不需要运行网络；化学式由网络写出（--system 是它认识的指令）。",
            ),
            f'taiwa generate --system "{INSTRUCTION}" --regex "{FORMULA}" -v {{said}}',
            "What is the formula of ammonia?",
            "Ammonia is NH3.",
        ),
        Step(
            (
                "The masks of such a text, place by place, over the tokens of this network.",
                "そのような文のマスクを、このモデルのトークンで、位置ごとに示します。",
                "这样一段文字的掩码，逐个位置，用这个网络的词元表。",
            ),
            f'taiwa explain --vocab builtin --regex "{FORMULA}" {{said}}',
            "Ammonia is NH3.",
            "it fits",
        ),
    ),
    "taiwa explain --regex \"[0-9]{1,3}%\" 42% --html masks.html",
)  # fmt: skip
PARTS = (SOLVING, DESK, ASKING, HOLDING)
