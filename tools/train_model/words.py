"""The words of the story grammar: characters, places and things.

A template (see plots.py) names a slot in braces. corpus.py fills it from these lists once per story, so
that the hero keeps one name.
"""

from __future__ import annotations

# Few and short names become single tokens, which a small model can keep apart.
HE_NAMES = ("Max", "Tom", "Sam", "Ben", "Leo", "Bo")
SHE_NAMES = ("Mia", "Lily", "Nina", "Zoe", "Luna", "Ida")

# kind -> its home
ANIMALS = {
    "fox": "a warm den", "rabbit": "a soft burrow", "bear": "a big cave", "mouse": "a tiny hole",
    "duck": "a nest of reeds", "owl": "a hollow tree", "frog": "a house of leaves", "cat": "a red house",
    "dog": "a cozy hut", "hedgehog": "a bed of leaves", "squirrel": "a tall oak tree",
    "turtle": "a quiet pond", "bird": "a round nest", "goat": "an old barn", "lamb": "a wooden barn",
    "otter": "a den by the water", "badger": "a deep den", "deer": "a green valley",
    "pony": "a clean stable", "snail": "a flower pot", "dragon": "a dark cave",
    "penguin": "a hut of ice", "robot": "an old workshop", "giant": "a stone castle",
    "fairy": "a blue flower", "pig": "a wooden barn", "bee": "a golden hive", "lion": "a rocky den",
    "elephant": "a wide valley", "monkey": "a tall tree",
}
BOYS = {"boy": "a small house", "prince": "a tall castle", "farmer": "a white farmhouse",
        "sailor": "a little boat", "baker": "a house that smelled of bread", "painter": "a bright attic"}
GIRLS = {"girl": "a small house", "princess": "a tall castle", "farmer": "a white farmhouse",
         "sailor": "a little boat", "baker": "a house that smelled of bread", "painter": "a bright attic"}

ADJECTIVES = ("little", "little", "little", "small", "brave", "shy", "clever", "kind", "happy", "curious",
              "gentle", "young", "quiet", "playful", "cheerful", "tiny", "lonely", "funny", "friendly", "sleepy")

# (in, to, name): "in the forest", "to the forest", "the forest"
PLACES = (
    ("in the forest", "to the forest", "the forest"), ("in the garden", "to the garden", "the garden"),
    ("by the river", "to the river", "the river"), ("near the lake", "to the lake", "the lake"),
    ("on the hill", "to the hill", "the hill"), ("in the meadow", "to the meadow", "the meadow"),
    ("by the sea", "to the sea", "the sea"), ("on the farm", "to the farm", "the farm"),
    ("in the village", "to the village", "the village"), ("in the park", "to the park", "the park"),
    ("in the valley", "to the valley", "the valley"), ("on the beach", "to the beach", "the beach"),
    ("near the mill", "to the mill", "the mill"), ("in the woods", "to the woods", "the woods"),
    ("by the pond", "to the pond", "the pond"), ("in the mountains", "to the mountains", "the mountains"),
)

COLORS = ("red", "blue", "green", "yellow", "golden", "purple", "white", "orange", "silver", "pink")
THINGS = ("ball", "hat", "kite", "scarf", "bell", "button", "key", "drum", "cup", "basket", "ring",
          "spoon", "book", "boot", "feather", "ribbon", "lamp", "toy", "blanket", "whistle")
FOODS = ("apples", "berries", "pears", "nuts", "plums", "carrots", "cherries", "cookies", "pies", "peaches")
DISHES = ("an apple pie", "a honey cake", "a pot of soup", "a berry pie", "a loaf of bread",
          "a plum cake", "a carrot cake", "a pan of cookies", "a nut cake", "a pumpkin pie")
MISSING = ("honey", "flour", "sugar", "butter", "milk", "salt")
PLANTS = ("sunflower", "pumpkin", "rose", "apple tree", "tomato plant", "tulip", "pear tree", "bean plant")
SKILLS = (
    ("swim", "swam across the pond"), ("whistle", "whistled a happy tune"), ("dance", "danced around the old tree"),
    ("sing", "sang a sweet song"), ("skate", "skated over the ice"), ("climb", "climbed to the top of the tree"),
    ("paint", "painted a picture of the moon"), ("row a boat", "rowed across the lake"),
    ("ride a bike", "rode all the way home"), ("fly a kite", "made the kite dance in the sky"),
    ("read", "read a whole book"), ("jump over the brook", "jumped right over the brook"),
)
LOVES = (
    "sing songs", "look at the clouds", "play in the grass", "collect round stones", "tell jokes", "pick flowers",
    "read old books", "paint pictures", "splash in the water", "run in the wind", "count the stars", "help others",
    "dance in the rain", "listen to the birds", "make new friends", "roll down the hill", "eat sweet {food}",
    "build small boats", "chase the wind", "ask questions", "sleep in the sun", "play the drum", "look for treasure",
)
HIDING_SPOTS = (
    "under the bed", "behind the old tree", "in the tall grass", "under a big leaf", "behind the door",
    "next to the well", "in the hay", "under the bridge", "behind a gray rock", "in the flower pot",
    "on top of the wall", "at the bottom of the basket",
)
TROUBLES = (
    ("stuck in the mud", "a long stick"), ("stuck under a branch", "all {his} strength"),
    ("high up in a tree", "an old ladder"), ("at the bottom of a hole", "a strong rope"),
    ("caught in a net", "a sharp stone"), ("on a rock in the middle of the river", "a long branch"),
    ("tangled in a bush", "two careful hands"),
)
TREASURES = ("a bag of golden coins", "a silver flute", "a book full of songs", "a jar of sweet honey",
             "a box of bright paints", "a shining crown", "a map of the stars", "a pile of colorful shells",
             "a tiny music box", "a warm blanket made of wool")
INSTRUMENTS = ("drum", "flute", "fiddle", "horn", "bell", "guitar")
WISHES = ("a true friend", "a brave heart", "a day full of fun", "a new song", "a kind friend", "a little adventure")
