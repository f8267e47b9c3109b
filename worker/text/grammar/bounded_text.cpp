#include "worker/text/grammar/bounded_text.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "worker/text/grammar/text_growth.hpp"

namespace leasehold {
namespace {

constexpr std::uint64_t kAny = TextGrowth::kAny;
/// Most states of an exact automaton. If it needs more, the growing parts share the characters.
constexpr std::size_t kMaxExactStates = 256;
constexpr std::size_t kMaxSharedStates = 1536;
/// States that a part of several states may use each time it is entered.
constexpr std::uint64_t kMaxPartStates = 768;
/// Least share of a part of several states, unless the length is shorter.
constexpr std::uint64_t kLeastShare = 32;
/// A longer bound is cut to this length.
constexpr std::uint64_t kMaxLength = 1 << 14;
/// Where several parts grow, texts are missing anyway, so large counts are rounded down to a
/// multiple of this. Places with equal counts share their rules.
constexpr std::uint64_t kRound = 64;

/// A state of the set, and what the bounds allow after it.
struct Place {
  std::uint32_t state;
  std::uint64_t left;     ///< Characters left; kAny: any rest fits.
  std::uint64_t missing;  ///< Characters missing; 0: any rest is long enough.
  std::uint64_t inner;    ///< Characters left of the part's share, besides `left`; kAny: no share.
  auto operator<=>(const Place&) const = default;
};

class Cutter {
 public:
  Cutter(const TextAutomaton& set, const TextGrowth& growth, bool shares)
      : set_(set), growth_(growth), shares_(shares) {}

  std::optional<BoundedText> cut(const CountRange& length, WorkBudget& work) {
    const std::uint64_t left = length.max ? std::min(*length.max, kMaxLength) : kAny;
    lacks_some_ = length.max && *length.max > kMaxLength;
    BoundedText text;
    if (!id_of(entered(0, left, length.min))) return text;
    const std::size_t most = shares_ ? kMaxSharedStates : kMaxExactStates;
    while (text.states.size() < places_.size()) {
      const Place place = places_[text.states.size()];
      const std::size_t n_edges = set_.states()[place.state].edges.size();
      if (places_.size() > most || has_tiny_share_ || !work.take(1 + n_edges)) return std::nullopt;
      text.states.push_back(state_of(place));
    }
    text.is_incomplete = lacks_some_;
    return text;
  }

 private:
  const TextGrowth::Part& part_of(std::uint32_t state) const {
    return growth_.parts[growth_.states[state].part];
  }

  BoundedText::State state_of(const Place& place) {
    const TextAutomaton::State& from = set_.states()[place.state];
    BoundedText::State made{.edges = {},
                            .accepts = from.accepts && place.missing == 0,
                            .loop = {},
                            .times = 0,
                            .beyond = {}};
    const bool counts =
        place.inner != kAny && place.missing == 0 && part_of(place.state).n_states == 1;
    for (const TextAutomaton::Edge& edge : from.edges) {
      if (counts && edge.to == place.state) {
        made.loop.push_back(edge.on);
      } else if (const auto next = id_of(after(place, edge.to))) {
        made.edges.push_back({edge.on, *next});
      }
    }
    if (!counts) return made;
    made.times = static_cast<std::uint32_t>(place.inner);
    made.beyond = id_of(after({place.state, place.left, 0, 0}, place.state));
    return made;
  }

  /// The place after a character that leads to `to`; nothing if no character is left.
  std::optional<Place> after(const Place& place, std::uint32_t to) {
    const TextGrowth::Part& part = part_of(place.state);
    const bool stays = part.grows && growth_.states[to].part == growth_.states[place.state].part;
    const std::uint64_t missing = place.missing - std::min<std::uint64_t>(place.missing, 1);
    if (stays && place.inner != kAny && place.inner > 0)
      return Place{to, place.left, missing, place.inner - 1};
    const bool keeps_exact = part.max_growing_parts == 1 && place.left == part.longest_rest;
    if (stays && place.inner == 0 && !keeps_exact) return std::nullopt;
    if (place.left == 0) return std::nullopt;
    const std::uint64_t left = place.left == kAny ? kAny : place.left - 1;
    if (stays) return Place{to, left, missing, kAny};
    return entered(to, left, missing);
  }

  /// The place on entry into `state`. Gives a growing part its share.
  Place entered(std::uint32_t state, std::uint64_t left, std::uint64_t missing) {
    const TextGrowth::Part& part = part_of(state);
    Place place{state, left, missing, kAny};
    if (!part.grows || left == kAny) return place;
    const bool rest_fits = part.max_growing_parts == 1 && part.longest_rest <= left;
    if (!shares_ && (!rest_fits || part.n_states > 1)) return place;
    const bool may_round = part.max_growing_parts > 1 && left >= 4 * kRound;
    if (may_round) left -= left % kRound;
    const std::uint64_t spare = left - std::min(left, growth_.states[state].shortest);
    place.inner =
        rest_fits ? left - part.longest_rest : spare / std::max(2u, part.max_growing_parts);
    if (part.n_states > 1) {
      const std::uint64_t most = kMaxPartStates / part.n_states;
      has_tiny_share_ = has_tiny_share_ || most < std::min(place.inner, kLeastShare);
      lacks_some_ = lacks_some_ || most < place.inner;
      place.inner = std::min(place.inner, most);
    }
    lacks_some_ = lacks_some_ || !rest_fits;
    place.left = rest_fits ? part.longest_rest : left - place.inner;
    return place;
  }

  /// The id of the place; nothing if the lengths alone show that no text goes through it. Other
  /// places without a text may still be made, for example where texts of even length are cut to 3
  /// characters. Their rules match nothing.
  std::optional<std::uint32_t> id_of(std::optional<Place> found) {
    if (!found) return std::nullopt;
    Place place = *found;
    const TextGrowth::State& state = growth_.states[place.state];
    const std::uint64_t left =
        place.inner == kAny || place.left == kAny ? place.left : place.left + place.inner;
    if (state.shortest > left || state.longest < place.missing) return std::nullopt;
    if (place.inner == kAny && state.longest <= left) place.left = kAny;
    if (state.shortest >= place.missing) place.missing = 0;
    const bool may_round = place.inner != kAny && place.missing == 0 && place.inner >= 4 * kRound &&
                           part_of(place.state).max_growing_parts > 1;
    if (may_round) place.inner -= place.inner % kRound;
    const auto [known, is_new] = ids_.emplace(place, static_cast<std::uint32_t>(places_.size()));
    if (is_new) places_.push_back(place);
    return known->second;
  }

  const TextAutomaton& set_;
  const TextGrowth& growth_;
  bool shares_;  ///< False: each count has its own state, except in loops at the end.
  bool lacks_some_ = false;
  bool has_tiny_share_ = false;
  std::map<Place, std::uint32_t> ids_;
  std::vector<Place> places_;
};

/// True if the automaton accepts at least one text.
bool has_text(const BoundedText& text) {
  std::vector<bool> accepts(text.states.size());
  std::vector<std::vector<std::uint32_t>> predecessors(text.states.size());
  for (std::uint32_t i = 0; i < text.states.size(); ++i) {
    const BoundedText::State& state = text.states[i];
    for (const auto& edge : state.edges) predecessors[edge.to].push_back(i);
    if (state.beyond) predecessors[*state.beyond].push_back(i);
    accepts[i] = state.accepts;
  }
  return !accepts.empty() && live_states(std::move(accepts), predecessors)[0];
}

}  // namespace

std::optional<BoundedText> within_lengths(const TextAutomaton& set, const CountRange& length,
                                          WorkBudget& work) {
  if (set.is_empty()) return BoundedText{};
  const TextAutomaton small = set.minimal(work);
  const std::size_t n_states = small.states().size();
  if (!work.take(n_states)) return std::nullopt;
  const TextGrowth growth(small);
  if (auto exact = Cutter(small, growth, false).cut(length, work)) {
    if (!has_text(*exact)) return BoundedText{};
    return exact;
  }
  auto shared = Cutter(small, growth, true).cut(length, work);
  if (!shared || !has_text(*shared)) return std::nullopt;
  return shared;
}

Symbols text_symbols(const BoundedText& set, GrammarBuilder& builder, TextForm form) {
  std::map<CharacterClass, Symbols> known;
  const auto character = [&](const CharacterClass& characters) {
    const auto [found, is_new] = known.emplace(characters, Symbols{});
    if (is_new) found->second = character_symbols(builder, characters, form);
    return found->second;
  };
  if (set.states.empty()) return builder.character({});
  std::vector<RuleId> rules;
  for (std::size_t i = 0; i < set.states.size(); ++i) rules.push_back(builder.declare({}));
  for (std::size_t i = 0; i < set.states.size() && !builder.is_full(); ++i) {
    const BoundedText::State& state = set.states[i];
    std::map<std::uint32_t, CharacterClass> by_target;
    for (const auto& edge : state.edges) by_target[edge.to].push_back(edge.on);
    std::vector<Symbols> alternatives;
    for (const auto& [to, characters] : by_target)
      alternatives.push_back(
          GrammarBuilder::join(character(characters), GrammarBuilder::rule(rules[to])));
    if (state.accepts) alternatives.emplace_back();
    if (!state.loop.empty()) {
      const Symbols one = character(state.loop);
      const Symbols loop = builder.repeat(one, {.min = 0, .max = state.times});
      alternatives = {GrammarBuilder::join(loop, builder.choice(std::move(alternatives)))};
      const std::uint32_t more = state.times + 1;
      if (state.beyond)
        alternatives.push_back(GrammarBuilder::join(builder.repeat(one, {.min = more, .max = more}),
                                                    GrammarBuilder::rule(rules[*state.beyond])));
    }
    builder.define(rules[i], std::move(alternatives));
  }
  return GrammarBuilder::rule(rules[0]);
}

Symbols text_symbols(const TextAutomaton& set, GrammarBuilder& builder, TextForm form) {
  BoundedText text;
  for (const TextAutomaton::State& state : set.states())
    text.states.push_back(
        {.edges = state.edges, .accepts = state.accepts, .loop = {}, .times = 0, .beyond = {}});
  return text_symbols(text, builder, form);
}

}  // namespace leasehold
