"""The plots. A plot is a sequence of beats, and a beat is a set of alternative sentences.

`{when}` opens the first beat ("One day, " after a timeless opening, "Soon, " in the middle of a day).
`{h}` and `{f}` are the hero and the friend, by name or by kind; `{friend}` introduces the friend.
A plot in NIGHT_OR_WEATHER names its own hour or weather and follows a timeless opening only.
"""

from __future__ import annotations

Plot = tuple[tuple[str, ...], ...]
SKIP = ""  # an optional beat

LOST: Plot = (
    ("{when}{h} could not find {his} {color} {thing}.", "{when}{h} lost {his} {color} {thing}.",
     "{when}{h} saw that {his} {color} {thing} was gone."),
    (SKIP, SKIP, "\"Where is my {thing}?\" {he} [asked|cried].", "{He} felt very sad.", "\"Oh no!\" said {H}. \"I had it this morning.\""),
    ("{He} looked {spot1}, but it was not there. {He} looked {spot2}, but it was not there.",
     "First {he} looked {spot1}. Then {he} looked {spot2}. There was no {thing}.",
     "{He} searched {spot1} and {spot2}, but {he} found only [dust|an old shoe|a sleepy spider|a dry leaf]."),
    ("Then {h} met {friend}. \"Can you help me find my {color} {thing}?\" asked {H}.",
     "{friend} came by and asked, \"Why are you sad?\" {H} told {fim} about the {thing}."),
    ("\"Of course,\" said {F}. \"Let us look together.\"", "\"I will help you,\" said {F}. \"Two can see more than one.\"",
     "{F} [nodded|smiled]. \"Let us look {spot3},\" {fe} said."),
    ("They looked {spot3}, and there it was! The {color} {thing} [was safe|was only a little dusty|shone in the sun].",
     "{F} looked {spot3} and laughed. \"Here it is!\" {fe} called.",
     "At last, they found the {thing} {spot3}."),
    ("\"Thank you, {F}!\" said {H}. {He} [gave {fim} a big hug|jumped for joy|shared some {food} with {fim}].",
     "{H} held the {thing} tight. \"You are a good friend,\" {he} said."),
)

STORM: Plot = (
    ("One [gray|dark|windy] day, [clouds filled the sky|the sky turned dark|a big storm came].",
     "One day, the wind began to blow and the rain began to fall."),
    (SKIP, SKIP, "{h} ran home and shut the door. It was warm [inside|by the fire].", "{h} sat by the fire in {his} home and listened to the rain."),
    ("Then {he} heard a knock. It was {friend}. {Fe} was [wet and cold|cold and tired|all wet].",
     "Knock, knock! {friend} stood at the door. {Fe} was [wet and cold|cold and tired|all wet]."),
    ("\"May I come in?\" asked {F}. \"[The wind took my roof|My house is full of water|I lost my way].\"",
     "\"Please help me,\" said {F}. \"[The wind took my roof|My house is full of water|I lost my way].\""),
    ("\"Come in, come in,\" said {H}. {He} gave {fim} [a warm blanket|some hot soup|a cup of hot tea].",
     "{H} opened the door wide. \"There is room for two,\" {he} said."),
    (SKIP, SKIP, "They told stories and [ate {food}|sang songs|laughed] until the rain stopped.",
     "All night the storm was loud, but the two friends were warm and safe."),
    ("In the morning, the sun came out. There was a [big|bright|beautiful] rainbow over {place}.",
     "Then the sun came back, and a rainbow stood over {place}."),
    ("\"Thank you for your kind heart,\" said {F}.", "{H} helped {F} [fix {fis} house|find the way home]."),
)

SEED: Plot = (
    ("{when}{h} found a [small|tiny|round|brown] seed {in_place}.", "{when}an old {fkind} gave {H} a [small|tiny|round|brown] seed.",
     "{when}the wind brought a [small|tiny|round|brown] seed to {H}."),
    (SKIP, SKIP, "\"What will it be?\" {he} [asked|wondered].", "{He} held it in the light. \"I will plant you,\" {he} said."),
    ("{He} dug a hole and put the seed in the soft ground.", "{He} planted the seed in a sunny place."),
    (SKIP, SKIP, "Every day, {he} gave it water. Every day, {he} waited.", "{He} watered it in the morning and sang to it in the evening."),
    ("But nothing came up. {F} the {fkind} said, \"Be patient. Good things take time.\"",
     "Days went by, and nothing happened. {H} was sad. \"Wait a little more,\" said {F} the {fkind}."),
    ("Then, one [warm|quiet|rainy] morning, a small green leaf looked out of the ground.",
     "One [warm|quiet|rainy] morning, {h} saw a tiny green leaf. {He} danced with joy."),
    ("The leaf grew and grew, until it was a [big|tall|beautiful] {plant}.",
     "Week after week it grew, and at last there stood a [big|tall|beautiful] {plant}."),
    ("Everyone came to see it. {H} was proud.", "{H} and {F} sat next to the {plant} and [smiled|watched the bees|ate {food}].",
     "\"You were right,\" {H} said to {F}. \"It was good to wait.\""),
)

BAKE: Plot = (
    ("{when}{h} wanted to [make|bake|cook] {dish}.", "{when}{h} had an idea. \"I will make {dish}!\" {he} said."),
    (SKIP, SKIP, "{He} washed {his} hands and took out a big bowl.", "{He} put everything on the table."),
    ("But there was no {missing} in the house.", "But the {missing} jar was empty. \"Oh dear,\" said {H}."),
    ("So {he} went to see {friend}. \"Do you have some {missing}?\" {he} asked.",
     "{He} walked down the road and met {friend}. \"May I have some {missing}?\" asked {H}."),
    ("\"Yes, I do,\" said {F}. \"May I help you?\"", "\"I have a lot of {missing},\" said {F}. \"Let us do it together.\""),
    (SKIP, SKIP, "They mixed and stirred and [laughed|sang]. There was {missing} on [the floor|the table|{his} nose]!",
     "{H} stirred, and {F} watched the fire. Soon the whole house smelled sweet."),
    ("When it was ready, they each had a big piece. It was [warm and sweet|so good|the best they ever had].",
     "At last it was done. They sat in the grass and ate until they were full."),
    ("They gave the rest to [the birds|their friends|an old woman|the children in the village].",
     "\"Everything is better with a friend,\" said {H}."),
)

LEARN: Plot = (
    ("{when}{h} wanted to learn to {skill}.", "{when}{h} saw {friend}. {Fe} could {skill} very well. {h} wanted to do it too.",
     "There was one thing {h} could not do. {He} could not {skill}."),
    ("{He} tried and tried, but {he} [could not do it|always fell down|did it all wrong].",
     "{He} tried once. {He} tried twice. It did not work."),
    (SKIP, SKIP, "\"I will never learn,\" said {H}. A tear ran down {his} face.", "\"It is too hard,\" {he} said, and {he} sat down on a stone."),
    ("{F} the {fkind} sat down next to {him}. \"I could not do it at first,\" {fe} said. \"I will show you.\"",
     "\"Do not give up,\" said {F} the {fkind}. \"Try a little every day.\""),
    ("So every [day|morning|evening] they practiced together. First it went slowly, then it went better.",
     "{H} practiced in the morning. {He} practiced in the evening. {F} helped {him} every time."),
    ("One day, {H} took a deep breath and {skill_done}.", "Then, at last, {h} {skill_done}."),
    ("\"I did it!\" {he} [shouted|cried|called]. {F} clapped and clapped.", "\"Look at me!\" called {H}. {F} was so proud of {him}."),
    ("Now {h} could {skill}, and {he} never forgot who helped {him}.", "\"Thank you for helping me,\" said {H}."),
)

RESCUE: Plot = (
    ("{when}{h} heard a [small|quiet|sad] voice. \"Help! Help!\" it called.", "{when}{h} heard someone cry. \"Please help me!\" said the voice."),
    ("{He} [stopped and listened|looked around|followed the sound]. It was {friend}. {Fe} was {trouble}.",
     "There was {friend}, {trouble}."),
    (SKIP, SKIP, "\"Do not be afraid,\" said {H}. \"I will help you.\"", "\"Hold on!\" called {H}. \"I am coming.\""),
    (SKIP, SKIP, "{He} was a little scared, but {he} was brave.", "{He} thought and thought. Then {he} had an idea."),
    ("With {tool}, {he} pulled and pulled. One, two, three!", "{He} used {tool}. It was hard work."),
    ("At last, {F} was free.", "Then {F} was safe again. {Fe} took a deep breath."),
    ("\"Thank you,\" said {F}. \"You saved me.\"", "\"How can I thank you?\" asked {F}. \"Be my friend,\" said {H}."),
    ("{F} gave {H} a~ {color} {thing} to [keep|remember the day].", "Then they went {to_place} and ate {food} together."),
)

STAR: Plot = (
    ("One [clear|quiet|warm] night, {h} looked up at the sky. It was full of stars.",
     "One night, {h} sat outside and looked at the [moon|stars]."),
    ("A star fell down, bright as fire. {H} closed {his} eyes and made a wish.", "Then {he} saw a falling star. \"I wish for {wish},\" {he} whispered."),
    ("The next day, {he} waited and waited, but nothing happened.", "In the morning, {he} ran outside. Everything looked the same."),
    ("\"Maybe stars do not listen,\" {he} said.", "{He} went {to_place} and sat down in the grass."),
    ("Just then, {friend} came along. \"I saw a falling star last night,\" {fe} said.",
     "There {he} met {friend}. {Fe} was looking for the star too."),
    (SKIP, SKIP, "They talked about the moon and the sky. They talked until the sun went down.",
     "They shared some {food} and looked for shapes in the clouds."),
    ("\"What did you wish for?\" asked {F}. {H} smiled. \"For {wish},\" {he} said.", "\"My wish came true,\" said {H}, and {he} smiled at {F}."),
    ("High above them, a star [shone|winked] in the dark.", "Above them, the stars came out, one by one."),
)

BOX: Plot = (
    ("{when}{h} found an old [box|chest] {spot1}.", "{when}{h} saw something [shiny|strange] {spot1}. It was an old box."),
    (SKIP, SKIP, "It was [locked|shut tight|covered with dust]. \"What is in it?\" {he} wondered.", "{He} shook it. Something moved inside."),
    ("{He} showed it to {friend}. \"We need a key,\" {fe} said.", "{friend} came to look. \"I think I know where the key is,\" {fe} said."),
    ("They looked {spot2}. There was a~ {color} key on a string.", "{F} looked {spot2} and came back with a~ {color} key."),
    (SKIP, SKIP, "Slowly, {H} turned the key. Click! The box opened.", "The key went in. Click! The box was open."),
    ("Inside, there was {treasure}.", "It held {treasure}. The friends could not believe it."),
    ("\"Let us share it,\" said {H}.", "\"It is for both of us,\" said {H}. {F} was very happy."),
    ("They showed it to everyone {in_place}.", "They kept it in {home} and looked at it every day."),
)

NOISE: Plot = (
    ("One [dark|windy|cold] night, {h} heard a strange noise. [Tap, tap, tap!|Scratch, scratch!|Bump, bump!]",
     "One night, {h} woke up. There was a strange noise {spot1}."),
    (SKIP, SKIP, "{He} pulled the blanket over {his} head. \"Is it a monster?\" {he} thought.", "{He} was afraid. {His} heart went thump, thump."),
    ("But then {he} took {his} {color} lamp. \"I am brave,\" {he} said.", "Then {he} took a deep breath and got out of bed."),
    ("Step by step, {he} went to look. The noise grew louder.", "{He} walked slowly. {He} looked {spot1}. {He} looked {spot2}."),
    ("And what did {he} see? It was only {friend}!", "There, in the light, sat {friend}."),
    ("\"I am sorry,\" said {F}. \"I was [looking for something to eat|afraid of the dark|looking for a dry place].\"",
     "\"Please do not be angry,\" said {F}. \"I could not sleep.\""),
    (SKIP, SKIP, "{H} laughed and laughed. \"I thought you were a monster!\" {he} said.", "\"You gave me a fright,\" said {H}, \"but now I am happy you are here.\""),
    ("They drank warm milk and talked until they were sleepy.", "{H} gave {F} some {food} and a soft pillow."),
)

SHARE: Plot = (
    ("{when}{h} had a basket full of {food}.", "{when}{h} picked a lot of {food}. The basket was full."),
    ("\"They are all mine,\" {he} said.", "{He} sat down under a tree and began to eat."),
    ("Then {friend} came by. \"I am so hungry,\" {fe} said.", "Along came {friend}. {Fe} looked tired and hungry."),
    (SKIP, SKIP, "{H} looked at {his} {food}. {He} did not want to give them away.", "At first, {H} [hid the basket|looked away|said nothing]."),
    (SKIP, SKIP, "But {F} looked so sad that {he} changed {his} mind.", "Then {he} remembered how it feels to be hungry."),
    ("\"Here, take some,\" said {H}. They ate together, and it tasted [even better|twice as good].",
     "\"There is enough for two,\" said {H}, and {he} gave half of it to {F}."),
    ("The next day, {F} came back with {dish}. \"This is for you,\" {fe} said.", "\"Thank you,\" said {F}. \"One day I will help you too.\""),
    ("{H} learned that sharing makes everything sweeter.", "Now they had [food|a feast] and a friend."),
)

RACE: Plot = (
    ("{when}there was a big race {in_place}. {h} wanted to win.", "{when}{h} and {friend} had a race {to_place}."),
    ("\"I am fast,\" said {H}. \"I am fast too,\" said {F} the {fkind}.", "Everyone came to watch. {F} the {fkind} wanted to win too."),
    ("One, two, three, go! They ran [past the trees|over the bridge|down the road].", "They ran as fast as the wind."),
    (SKIP, SKIP, "First {H} was ahead. Then {F} was ahead.", "{F} was fast, but {H} was a little faster."),
    ("Then {F} fell down and hurt {fis} [leg|knee|foot].", "Suddenly, {F} tripped over a stone and could not get up."),
    ("{H} saw it and stopped. \"Are you all right?\" {he} asked.", "{H} could win now. But {he} turned around and went back."),
    ("{He} helped {F} up, and they walked to the end together.", "\"Lean on me,\" said {H}. Slowly, they went on together."),
    ("Everyone cheered. \"You both win!\" they called.", "They came in last, but everyone clapped for them."),
)

BOAT: Plot = (
    ("{when}{h} built a [small|little|fine] boat out of [wood|an old barrel|a big leaf|reeds].", "{when}{h} found an old boat and painted it {color}."),
    (SKIP, SKIP, "\"I want to see the other side of the water,\" {he} said.", "{He} called it the {color} {thing}, and {he} was very proud of it."),
    ("{friend} wanted to come along. \"Jump in,\" said {H}.", "\"Who will sail with me?\" {he} asked. \"I will,\" said {friend}."),
    (SKIP, SKIP, "The wind was soft, and the water was [blue|calm|clear].", "They sailed past [green hills|tall reeds|sleepy ducks] and sang a song."),
    ("Then a big wave came. The boat rocked left and right.", "Then the wind grew strong, and {H} held on tight."),
    ("\"Do not be afraid,\" said {F}. \"We will row together.\"", "\"Pull!\" called {F}. They rowed with all their strength."),
    ("At last, they came to a [small|green|quiet] island. There they found {treasure}.",
     "Soon they reached a [small|green|quiet] island full of {food}."),
    ("When the sun went down, they sailed home.", "They rested in the warm sand and sailed home in the evening."),
)

BIRTHDAY: Plot = (
    ("{when}it was {H}'s birthday, but nobody said a word.", "{when}{h} woke up and smiled. It was {his} birthday!"),
    ("{He} went to see {friend}. \"Do you know what day it is?\" {he} asked.", "{He} met {friend} on the road. \"Do you know what day it is?\" asked {H}."),
    ("\"I do not know,\" said {F}. \"I have no time today.\"", "\"It is a day like any other,\" said {F}, and {fe} ran away."),
    (SKIP, SKIP, "{H} felt sad. \"Everyone forgot,\" {he} thought.", "{H} walked {to_place} all alone. A tear fell into the grass."),
    ("In the evening, {he} came home. The house was dark and quiet.", "When the sun went down, {he} walked home slowly and opened the door."),
    ("\"Surprise!\" called all {his} friends. There was {dish} and a~ {color} {thing}.",
     "Suddenly, all the lights came on. \"Happy birthday, {H}!\" everyone called."),
    (SKIP, SKIP, "\"We did not forget,\" said {F}. \"We were making you a party.\"", "{F} gave {him} a~ {color} {thing}. \"This is for you,\" {fe} said."),
    ("They danced and [sang|ate|played] until late at night.", "{H} laughed and cried at the same time. {He} had the best friends of all."),
)

COIN: Plot = (
    ("{when}{h} went to the market with one coin. {He} wanted to buy a~ {color} {thing}.",
     "{when}{h} had saved one coin to buy a~ {color} {thing}."),
    (SKIP, SKIP, "The market was full of [people|colors|good smells].", "{He} walked past the [bread|apples|flowers] and did not stop."),
    ("Then {he} saw {friend}. {Fe} was crying. \"I lost my money,\" {fe} said.",
     "On the way, {he} met {friend}. \"I have nothing to eat,\" {fe} said."),
    (SKIP, SKIP, "{H} looked at {his} coin. {He} thought about the {thing}.", "{H} wanted the {thing} very much."),
    ("Then {he} put the coin into {F}'s hand. \"Take it,\" {he} said. \"You need it more.\"",
     "\"Here,\" said {H}, and {he} gave the coin to {F}."),
    ("{F} did not know what to say. {Fe} [hugged {him}|smiled a big smile].", "{F} bought [bread|soup|milk] and was not hungry any more."),
    ("A week later, there was a box at {H}'s door. Inside was a~ {color} {thing}.",
     "The next day, {F} came to {H}'s door with a~ {color} {thing}. {Fe} had made it with {fis} own hands."),
    ("\"For a kind heart,\" said the note.", "\"Kind deeds come back,\" said {F}."),
)

NEWCOMER: Plot = (
    ("{when}{friend} moved {to_place}. {Fe} did not know anyone.", "{when}{h} met someone new. It was {friend}."),
    ("{F} was shy and stood {spot1}.", "{F} did not say a word. {Fe} only looked at {fis} feet."),
    ("{H} went over to {fim}. \"Hello,\" {he} said. \"My name is {H}. Do you want to play?\"",
     "\"Hello,\" said {H}. \"Would you like some {food}?\""),
    ("{F} shook {fis} head. {Fe} was afraid.", "At first, {F} ran away and hid {spot2}."),
    ("So {H} sat down and [hummed a song|rolled a~ {color} ball|drew a picture in the sand].", "So {H} waited. {He} left a~ {color} {thing} {spot2} for {fim}."),
    ("Slowly, {F} came closer. \"May I try?\" {fe} asked.", "After a while, {F} came back. \"That is nice,\" {fe} said in a small voice."),
    (SKIP, SKIP, "They played [hide and seek|with the ball|by the water] all afternoon.", "They talked and laughed, and {F} was not shy any more."),
    ("\"I have a friend now,\" said {F}.", "\"Will you come again tomorrow?\" asked {F}. \"Yes,\" said {H}."),
)

BROKEN: Plot = (
    ("{when}{h} was playing with a ball at {F}'s house. Crash! A~ {color} cup fell down and broke.",
     "{when}{h} ran too fast and broke {his} grandmother's {color} cup."),
    ("\"Oh no,\" {he} thought. \"What will I do?\"", "{H} was afraid. {He} hid the pieces {spot1}."),
    (SKIP, SKIP, "All day, {he} felt bad. {He} could not eat, and {he} could not play.", "{He} could not think about anything else."),
    ("{F} the {fkind} asked, \"What is wrong?\"", "In the evening, {F} the {fkind} saw {his} sad face."),
    ("{H} told the truth. \"I broke the cup,\" {he} said. \"I am very sorry.\"", "\"I broke something,\" {H} said with tears in {his} eyes."),
    ("{F} was quiet for a moment. Then {fe} smiled. \"Thank you for telling me,\" {fe} said.",
     "\"It was brave to tell the truth,\" said {F}."),
    (SKIP, SKIP, "Together, they glued the pieces. The cup looked [almost new|funny, but it held tea].", "They found all the pieces and fixed the cup with glue."),
    ("{H} felt light as a feather.", "After that, {H} always told the truth."),
)

SNOW: Plot = (
    ("One winter morning, everything was white. Snow covered {place}.", "One day, it began to snow. Soon {place} was white and quiet."),
    ("{h} put on a~ {color} hat and ran outside.", "\"Snow!\" cried {H}. {He} put on {his} boots and went out."),
    ("{He} rolled a big ball of snow. Then {he} rolled a small one.", "{He} began to build a [snowman|snow bear]."),
    ("But it had no nose. \"What can I use?\" asked {H}.", "\"It needs a nose,\" said {H}, but {he} had nothing to use."),
    ("{friend} came by with a [carrot|round stone|pine cone]. \"Try this,\" {fe} said.", "{friend} gave {him} a [carrot|round stone|pine cone]. It was the perfect nose."),
    (SKIP, SKIP, "They put the {color} hat on its head. Now it looked [happy|very fine|like a king].", "Then they gave it two arms made of sticks. It looked very funny."),
    (SKIP, SKIP, "They threw snow and laughed until their [noses|ears|feet] were cold.", "They slid down the hill again and again."),
    ("Then they went inside and drank hot [milk|tea|cocoa] by the fire.", "In the evening, they sat by the fire and looked out at their friend in the snow."),
)

SICK: Plot = (
    ("One day, {F} the {fkind} did not come out to play.", "One day, {h} heard that {friend} was sick."),
    ("\"Where is {F}?\" {h} asked. {F} was in bed with a [cold|fever|sore throat].", "{F} had to stay in bed. {Fe} felt weak and sad."),
    ("{h} wanted to help. {He} made {dish}.", "{h} picked some flowers and made hot tea."),
    (SKIP, SKIP, "{He} walked a long way through the [wind|rain|cold].", "{He} put it all in a basket and went to see {fim}."),
    ("\"I brought you something,\" said {H}. {F} sat up and smiled.", "{F} was so happy to see {him}. \"You came!\" {fe} said."),
    (SKIP, SKIP, "{H} told {fim} [a funny story|a long story|three jokes], and {F} laughed for the first time that day.",
     "{H} sat by the bed and read from a book until {F} fell asleep."),
    ("Every day {he} came back, and every day {F} felt better.", "The next morning, {F} felt much better."),
    ("Soon, they could play together {in_place} again.", "\"You are the best medicine,\" said {F}."),
)

MUSIC: Plot = (
    ("{when}{h} found an old {instrument} {spot1}.", "{when}{h} got a {instrument} from {his} grandfather."),
    (SKIP, SKIP, "{He} tried to play it. It sounded [strange|very loud|like a sad goose].", "The first sound was so loud that a bird fell off a branch."),
    ("\"Please stop,\" said {friend}. \"My ears hurt.\"", "{friend} covered {fis} ears. \"What a noise!\" {fe} said."),
    (SKIP, SKIP, "{H} was sad, but {he} did not give up. {He} played a little every day.", "So {H} went far away, behind the last house, and played there alone."),
    ("After a while, the music grew soft and sweet.", "Day by day, the sounds turned into a song."),
    ("One evening, {F} heard a lovely song. \"Who is playing?\" {fe} asked. It was {H}!",
     "Then {F} came to listen. \"That is beautiful,\" {fe} said."),
    ("Soon everyone came {to_place} to listen and dance.", "{F} began to dance, and the stars came out to listen."),
    ("\"Play it again!\" they called.", "{H} played until the moon was high."),
)

SLEEP: Plot = (
    ("One night, {h} could not sleep.", "One evening, it was time for bed, but {h} was not tired."),
    (SKIP, SKIP, "{He} turned to the left. {He} turned to the right.", "{He} counted sheep. {He} counted stars. It did not help."),
    ("So {he} got up and went outside. The moon was [big|round|bright].", "{He} looked out of the window. The world was dark and still."),
    ("There {he} saw {friend}. \"I cannot sleep,\" said {H}.", "{friend} was awake too. \"Can you not sleep?\" {fe} asked."),
    ("\"Let us think of nice things,\" said {F}. \"I think of [warm bread|soft grass|the sea].\"",
     "\"I know a song for that,\" said {F}."),
    ("\"I think of {food},\" said {H}. \"And of my {color} {thing}.\"", "{F} sang softly. The wind sang too."),
    (SKIP, SKIP, "{H} yawned. {His} eyes grew heavy.", "Slowly, {H} became warm and sleepy."),
    ("\"Good night, {F},\" {he} whispered. \"Good night, {H},\" said {F}.", "Soon, {h} was asleep, and the moon watched over {him}."),
)

BRIDGE: Plot = (
    ("{when}the old bridge near {place} broke. Nobody could cross the water.", "{when}{h} came to the river. The bridge was gone!"),
    ("On the other side stood {friend}. \"How can I get home?\" {fe} called.", "{friend} was there too. \"What can we do?\" {fe} asked."),
    ("{H} looked at the [tall trees|big stones|long ropes]. \"We can build a new one,\" {he} said.", "\"We will make a new bridge,\" said {H}."),
    ("{H} carried wood. {F} carried stones.", "They worked from morning to evening."),
    (SKIP, SKIP, "It was hard work, and they were tired. But they did not stop.", "Others came to help. A~ {fkind2} brought rope, and a~ {fkind3} brought {food}."),
    ("After three days, the bridge was ready. It was strong and [wide|straight|beautiful].", "At last, the new bridge stood over the water."),
    ("{H} and {F} walked across it first. Everyone cheered.", "Everyone walked over it, and nobody got wet."),
    ("They painted it {color} so that all could see it.", "\"Together we can do big things,\" said {F}."),
)

DAY_PLOTS: tuple[Plot, ...] = (LOST, SEED, BAKE, LEARN, RESCUE, BOX, SHARE, RACE, BOAT, BIRTHDAY, COIN, NEWCOMER,
                               BROKEN, MUSIC, BRIDGE)
NIGHT_OR_WEATHER: tuple[Plot, ...] = (STORM, STAR, NOISE, SNOW, SICK, SLEEP)
