"""Openings and endings. `[a|b]` is chosen each time, `{slot}` once per story."""

from __future__ import annotations

# Openings without an hour or weather, which fit every plot.
TIMELESS = (
    "Once upon a time, there was a~ {adj} {kind} named {H}. {trait}",
    "Once upon a time, there was a~ {adj} {kind} named {H}. {lived}",
    "Once upon a time, a~ {adj} {kind} named {H} lived {in_place}. {trait}",
    "Once upon a time, there lived a~ {adj} {kind} {in_place}. {His} name was {H}. {trait}",
    "Once upon a time, {in_place}, there was a~ {adj} {kind}. {Everyone} called {him} {H}. {trait}",
    "There once was a~ {adj} {kind} named {H}. {trait}",
    "Long ago, a~ {adj} {kind} named {H} lived {in_place}. {trait}",
    "Far away, {in_place}, there lived a~ {adj} {kind} named {H}. {trait}",
    "The {adj} {kind} lived {in_place}. {His} name was {H}. {trait}",
    "The {adj} {kind} had {home} {in_place}. {His} name was {H}. {trait}",
    "The {adj} {kind} was called {H}. {lived}",
    "{H} was a~ {adj} {kind}. {lived}",
    "{H} was a~ {adj} {kind} who lived {in_place}. {trait}",
    "{H} the {kind} lived {in_place}. {trait}",
    "{H} and {F} were [best|good|old] friends. {H} was a~ {adj} {kind}, and {F} was a~ {fadj} {fkind}.",
    "{in_place}, there lived a~ {adj} {kind} named {H}. {trait}",
    "{in_place}, there was {home}. A~ {adj} {kind} named {H} lived there. {trait}",
    "A~ {adj} {kind} named {H} lived {in_place}. {trait}",
    "In {home} {in_place}, there lived a~ {adj} {kind}. {His} name was {H}.",
    "This is the story of {H}, a~ {adj} {kind}. {lived}",
)

# Openings on a fine day, which do not fit plots with their own weather or night.
DAYTIME = (
    "One [sunny|bright|warm|cool|quiet|fine] morning, a~ {adj} {kind} named {H} went for a walk {in_place}.",
    "One morning, a~ {adj} {kind} named {H} woke up early. {He} [washed|stretched|smiled] and went {to_place}.",
    "One morning, {H} the {kind} [opened the door|looked out of the window]. The [sun was bright|sky was blue|air was sweet].",
    "One [morning|day], the {adj} {kind} went {to_place}. {His} name was {H}.",
    "One day, a~ {adj} {kind} named {H} was playing {in_place}.",
    "One day, {H} the {kind} went {to_place}. {He} wanted to see [something new|the flowers|a friend].",
    "One [sunny|warm|lazy] afternoon, {H} the {kind} was resting {in_place}.",
    "It was a [sunny|bright|warm|lovely] day {in_place}. {H} the {kind} was [happy|full of joy|ready to play].",
    "It was spring {in_place}. A~ {adj} {kind} named {H} went out to play.",
    "The {adj} {kind} woke up with a smile. {His} name was {H}. {He} ran {to_place}.",
    "The {adj} {kind} was walking {in_place}. {His} name was {H}.",
    "{in_place}, a~ {adj} {kind} named {H} was playing in the sun.",
    "{in_place}, the birds were singing. A~ {adj} {kind} named {H} came to listen.",
    "When the sun came up, {H} the {kind} jumped out of bed. {He} wanted to go {to_place}.",
    "{H} the {kind} had a free day. {He} packed some {food} and walked {to_place}.",
    "Today was a special day for {H}, the {adj} {kind}. {He} was going {to_place}.",
    "Every day, {H} the {kind} walked {to_place}. Today, {he} walked a little farther.",
)

TRAITS = (
    "{He} loved to {love}.", "{He} loved to {love}.", "{He} liked to {love} [all day|every day|with {F}].",
    "More than anything, {he} loved to {love}.", "[Every day|Each morning], {he} went out to {love}.",
    "{He} had a [good|kind|warm] heart and a [big|bright|shy] smile.", "{His} best friend was {F}, a~ {fadj} {fkind}.",
    "{He} had many friends and loved to {love}.", "{He} had a~ {color} {thing} that {he} liked very much.",
)
LIVED = (
    "{He} lived in {home} {in_place}.", "{He} lived {in_place} with {his} [mother|grandmother|family].",
    "{He} lived in {home}, not far from {place}.", "{He} lived {in_place} and loved to {love}.",
)

ENDINGS = (
    "From that day on, {H} and {F} were [the best of friends|always together].",
    "{H} and {F} walked home [hand in hand|side by side|with a smile].",
    "That night, {H} went to sleep with a [smile|happy heart|warm heart].",
    "{h} was very happy. It had been a [good|wonderful|perfect] day.",
    "{H} learned that [a good friend is the best gift|it is good to help|being kind makes everyone happy].",
    "And they all lived happily ever after.",
    "{H} hugged {F}. It was the best day of all.",
    "The two friends laughed and [sang all the way home|danced until the moon came up|played until the sun went down].",
    "After that, {h} was never [sad|lonely] again.",
    "Then {h} went home to {home} and [slept well|dreamed sweet dreams].",
)

REQUESTS = (
    "Tell me a story about a~ {adj} {kind}.", "Tell me a story about a~ {kind}.",
    "Write a story about a~ {kind} named {H}.", "Please tell me a story about {H} the {kind}.",
    "Tell me a story about {H}.", "Write a short story about a~ {adj} {kind}.",
    "Can you tell me a story about a~ {kind}?", "I want to hear a story about a~ {kind}.",
    "Tell me a story.", "Tell me about a~ {kind} {in_place}.",
)
