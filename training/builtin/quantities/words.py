"""The vocabulary of problems: international names, countable things, and made-up words."""

from dataclasses import dataclass

from training.builtin.quantities.telling import Teller, Thing

__all__ = ["Person", "goods", "invented", "noun", "person", "place", "several", "subject"]

HER = """Amina Yuki Maria Fatima Ingrid Chloe Priya Ana Sofia Mei Aiko Leila Grace Zainab Olga Hana Nadia Elena Rosa Lucy Emma
Ayesha Ngozi Siti Thandi Wanjiru Akua Freya Astrid Greta Ines Camille Bianca Carmen Lucia Paloma Jelena Ivana Katya Anya Zofia
Ilona Eszter Despina Ioana Daria Gulnara Aigerim Saule Tuyet Linh Mai Lan Somchai Malee Dewi Putri Nurul Aroha Moana Leilani
Kaya Winona Nizhoni Quilla Sara Rachel Miriam Noa Tamar Ruth Salma Huda Yasmin Rania Shirin Parisa Meera Lakshmi Kavita Anjali
Sunita Deepa Nirmala Jiwon Minseo Soyeon Haruka Sakura Naoko Tomoko Xiaoli Jing Ying Fang Lihua Beth Megan Hannah Julia Alice
Zoe Nora Clara Ella Ivy Ruby Hazel Amelia Charlotte Abigail Aaliyah Imani Keisha Marisol Guadalupe Ximena Beatriz Larissa""".split()
HIS = """Kofi Ahmed Ivan Carlos Hiro Tariq Omar Jonas Pavel Diego Liam Kwame Tunde Mateo Rahul Chen Luca Sven Bob Tom Juan
Emeka Chidi Sipho Themba Kamau Otieno Abebe Tesfaye Yusuf Ibrahim Hassan Karim Walid Nasser Reza Dariush Kaveh Arash Farid
Vikram Arjun Sanjay Rohan Kiran Ravi Anil Suresh Nikhil Imran Bilal Kenji Takumi Daichi Satoshi Ryo Haruto Wei Jun Ming Hao
Bao Minh Duc Nam Anan Budi Agus Wayan Joko Tane Wiremu Keoni Sione Tama Lars Erik Bjorn Olaf Anders Mikko Jukka Aarne Henrik
Pierre Marc Antoine Luc Hugo Marco Paolo Giulio Matteo Pedro Javier Miguel Andres Pablo Thiago Joao Rui Stefan Klaus Dieter
Felix Jan Pieter Bram Marek Tomasz Piotr Karel Milan Zoltan Laszlo Bogdan Mircea Nikos Giorgos Dimitri Sergei Oleg Andriy
Timur Ruslan Nurlan David Eli Ari Moshe Jacob Peter George Harry Jack Noah Ben Sam Max Leo Finn Owen Rhys Callum Declan""".split()
PLACES = """Osaka Lagos Lima Oslo Cairo Hanoi Quito Perth Mumbai Nairobi Toronto Lyon Porto Riga Tbilisi Accra Bogota Cusco
Dakar Turin Leeds Austin Denver Kyoto Busan Chengdu Jakarta Manila Karachi Tehran Ankara Athens Prague Vienna Bremen Ghent Malmo
Bergen Tartu Kaunas Lviv Minsk Kazan Almaty Tashkent Ulaanbaatar Auckland Suva Apia Hobart Darwin Windhoek Lusaka Kigali Tunis""".split()
THINGS = """apples pears plums cherries oranges lemons bananas mangoes figs grapes peaches kiwis melons coconuts olives dates
carrots potatoes onions tomatoes peppers cabbages pumpkins radishes beans peas eggs loaves rolls buns muffins cookies biscuits
cakes pies tarts pancakes waffles doughnuts croissants bagels sandwiches pizzas burgers tacos dumplings noodles sausages
sweets candies chocolates lollipops toffees walnuts almonds peanuts raisins pencils pens crayons markers erasers rulers
notebooks folders envelopes stamps postcards letters cards stickers magazines books comics newspapers maps posters paintings
photos frames marbles beads buttons ribbons shells pebbles stones rocks coins medals badges rings necklaces bracelets keys locks
chairs tables lamps candles cups mugs plates bowls spoons forks knives glasses bottles jars boxes baskets bags sacks crates
barrels buckets bricks tiles planks nails screws bolts nuts hammers ladders ropes wires bulbs batteries cables phones tablets
laptops cameras watches clocks toys dolls kites balloons balls bats rackets puzzles blocks robots trains cars buses trucks
bicycles scooters boats planes shirts socks hats scarves gloves coats shoes boots sandals jackets sweaters towels blankets
pillows curtains carpets flowers roses tulips lilies daisies seeds saplings trees leaves acorns pinecones ducks hens geese
sheep goats cows pigs horses rabbits cats dogs birds pigeons parrots fish frogs turtles bees ants snails butterflies crickets
tickets tokens chips points stars flags drums flutes guitars songs pages chapters poems lessons chess-pieces game-cards
paper-cranes light-bulbs tennis-balls water-bottles tea-bags coffee-beans cereal-bars ice-cubes picture-books phone-cards""".split()
SOLD = """apple pear lemon mango melon coconut pineapple cabbage loaf bun muffin cookie cake pie pancake doughnut sandwich pizza
burger taco sausage chocolate-bar pencil pen marker eraser ruler notebook folder stamp postcard sticker magazine book comic map
poster frame candle cup mug plate bowl spoon lamp chair key bulb battery cable toy doll kite balloon ball puzzle shirt hat scarf
coat towel pillow rose tulip ticket badge bracelet bottle jar bag box tile brick screw ring drum guitar bicycle helmet umbrella
backpack wallet watch clock mirror teapot kettle bucket broom rope hammer ladder flowerpot lemonade coffee tea juice smoothie
salad soup token lollipop ice-cream cinema-ticket bus-ticket train-ticket museum-ticket phone-case water-bottle""".split()
BULK = """rice flour sugar salt honey butter cheese coffee tea milk juice oil vinegar paint petrol diesel water sand gravel
cement soil wheat barley oats lentils beans peas potatoes carrots onions tomatoes grapes cherries apples nuts almonds raisins
cocoa chocolate fish meat beef chicken wool cotton yarn clay copper steel iron wax soap ink glue cider syrup jam yoghurt""".split()
ONSETS = "b bl br c ch d dr f fl g gl gr h j k kl kr l m n p pl pr qu r s sh sk sn sp st t th tr v w y z zh".split()
VOWELS = "a e i o u a e i o u ai ee oo ou ia".split()
CODAS = "_ _ _ b d g k l m n nd nk p r rb rk rm sk st t x z bble zzle ng".split()
LAST = "_ _ el en er in ix ock oid on op um ulet ling kin"


@dataclass(frozen=True, slots=True)
class Person:
    """A person, and the pronouns for them."""

    name: str
    he: str
    his: str

    def thing(self) -> Thing:
        """Return the person as a referent for templates."""
        return Thing(self.name, (self.he, self.he, self.he, self.name), self.his)


def person(teller: Teller) -> Person:
    """Return a name, sometimes a made-up one."""
    random = teller.random
    she = random.random() < 0.5
    name = random.choice(HER if she else HIS) if random.random() < 0.93 else invented(teller).capitalize()
    return Person(name, "she", "her") if she else Person(name, "he", "his")


def invented(teller: Teller) -> str:
    """Return a pronounceable made-up word."""
    choice = teller.random.choice
    middle = choice(ONSETS) + choice(VOWELS) if teller.chance(0.45) else ""
    word = (
        choice(ONSETS)
        + choice(VOWELS)
        + middle
        + choice(ONSETS)
        + choice(VOWELS)
        + choice(CODAS)
        + choice(LAST.split())
    )
    return word.replace("_", "")


def noun(teller: Teller) -> str:
    """Return a plural noun, sometimes made up, so that the model learns to copy it."""
    if teller.chance(0.8):
        return teller.random.choice(THINGS).replace("-", " ")
    return several(invented(teller))


def several(word: str) -> str:
    """Return the plural of a noun.

    >>> several("box"), several("cherry"), several("shelf")
    ('boxes', 'cherries', 'shelves')
    """
    if word == "shelf":
        return "shelves"
    if word.endswith(("s", "x", "ch", "sh", "z")):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def goods(teller: Teller, *, bulk: bool = False) -> str:
    """Return something for sale, or with `bulk` something sold by weight or volume."""
    if teller.chance(0.12):
        return invented(teller)
    return teller.random.choice(BULK if bulk else SOLD).replace("-", " ")


def place(teller: Teller) -> str:
    """Return a town, real or made up."""
    return teller.random.choice(PLACES) if teller.chance(0.8) else invented(teller).capitalize()


def subject(teller: Teller) -> Thing:
    """Return a person who has, buys or gives: a name or a role."""
    if teller.chance(0.72):
        return person(teller).thing()
    role = teller.random.choice(ROLES)
    he, his = teller.random.choice((("he", "his"), ("she", "her")))
    article = teller.pick("a", "a", "the", "my")
    return Thing(f"{article} {role}", (he, he, f"the {role}"), his)


ROLES = """farmer teacher baker gardener librarian shopkeeper student boy girl cook coach nurse neighbour neighbor friend cousin
uncle aunt brother sister grandmother grandfather father mother child collector painter carpenter fisherman florist postman tailor
sailor scout driver waiter tourist artist scientist manager clerk builder beekeeper janitor captain magician pirate""".split()
