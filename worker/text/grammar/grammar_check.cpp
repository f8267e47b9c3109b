#include "worker/text/grammar/grammar_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <span>

namespace leasehold {
namespace {

using Kind = GrammarSymbol::Kind;
using Flags = std::vector<bool>;

std::span<const GrammarSymbol> alternative_at(const Grammar& grammar, std::uint32_t begin) {
  std::uint32_t end = begin;
  while (grammar.symbols[end].kind != Kind::End) ++end;
  return std::span(grammar.symbols).subspan(begin, end - begin);
}

/// The smallest set that has each rule with an alternative whose symbols all satisfy `holds` or are
/// rules of the set. Cost: linear in the grammar.
Flags closure(const Grammar& grammar, const std::function<bool(const GrammarSymbol&)>& holds) {
  struct Open {
    std::uint32_t rule;
    std::size_t missing;  ///< Symbols that are rules outside the set.
  };
  Flags in(grammar.rules.size());
  std::vector<Open> alternatives;
  std::vector<std::vector<std::uint32_t>> uses(
      grammar.rules.size());  // alternatives that use each rule
  std::vector<std::uint32_t> todo;
  const auto add = [&](std::uint32_t rule) {
    if (!in[rule]) todo.push_back(rule);
    in[rule] = true;
  };
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (const std::uint32_t begin : grammar.rules[rule].alternatives) {
      const auto symbols = alternative_at(grammar, begin);
      const auto fits = [&](const GrammarSymbol& s) { return s.kind == Kind::Rule || holds(s); };
      if (!std::ranges::all_of(symbols, fits)) continue;
      Open open{rule, 0};
      for (const GrammarSymbol& symbol : symbols) {
        if (symbol.kind != Kind::Rule) continue;
        ++open.missing;
        uses[symbol.index].push_back(static_cast<std::uint32_t>(alternatives.size()));
      }
      alternatives.push_back(open);
      if (open.missing == 0) add(rule);
    }
  }
  while (!todo.empty()) {
    const std::uint32_t rule = todo.back();
    todo.pop_back();
    for (const std::uint32_t user : uses[rule])
      if (--alternatives[user].missing == 0) add(alternatives[user].rule);
  }
  return in;
}

/// The rules that `rule` may begin with. Excludes a last symbol that follows symbols that may be
/// empty: the matcher allows recursion through it.
std::vector<std::uint32_t> left_ends(const Grammar& grammar, const Flags& nullable,
                                     std::uint32_t rule) {
  std::vector<std::uint32_t> ends;
  for (const std::uint32_t begin : grammar.rules[rule].alternatives) {
    const auto alternative = alternative_at(grammar, begin);
    for (std::size_t i = 0; i < alternative.size(); ++i) {
      if (alternative[i].kind != Kind::Rule) break;
      const bool harmless = i > 0 && i + 1 == alternative.size();
      if (!harmless) ends.push_back(alternative[i].index);
      if (!nullable[alternative[i].index]) break;
    }
  }
  return ends;
}

/// A rule that reaches itself through left ends. The depth-first search has an explicit stack,
/// because grammars may be deep.
std::optional<std::uint32_t> find_left_recursion(const Grammar& grammar, const Flags& nullable) {
  enum class State : std::uint8_t { New, Open, Done };
  struct Visit {
    std::uint32_t rule;
    std::vector<std::uint32_t> left;
  };
  std::vector<State> states(grammar.rules.size(), State::New);
  std::vector<Visit> visits;
  const auto open = [&](std::uint32_t rule) {
    if (states[rule] != State::New) return;
    states[rule] = State::Open;
    visits.push_back({rule, left_ends(grammar, nullable, rule)});
  };
  for (std::uint32_t start = 0; start < grammar.rules.size(); ++start) {
    open(start);
    while (!visits.empty()) {
      Visit& visit = visits.back();
      if (visit.left.empty()) {
        states[visit.rule] = State::Done;
        visits.pop_back();
        continue;
      }
      const std::uint32_t next = visit.left.back();
      visit.left.pop_back();
      if (states[next] == State::Open) return next;
      open(next);
    }
  }
  return std::nullopt;
}

Flags productive_rules(const Grammar& grammar) {
  return closure(grammar, [&](const GrammarSymbol& symbol) {
    return !grammar.byte_sets[symbol.index].empty();
  });
}

std::unexpected<Error> cannot_complete(const Grammar& grammar, std::uint32_t rule) {
  return fail(Errc::BadRequest,
              fmt::format("rule '{}' cannot be completed by any text; add an alternative that ends",
                          rule_name(grammar, rule)));
}

Result<void> check_left_recursion(const Grammar& grammar) {
  const Flags nullable = closure(grammar, [](const GrammarSymbol&) { return false; });
  const auto rule = find_left_recursion(grammar, nullable);
  if (!rule) return {};
  return fail(Errc::BadRequest,
              fmt::format("rule '{}' is left recursive; begin its alternatives with another "
                          "symbol, or use a repetition",
                          rule_name(grammar, *rule)));
}

}  // namespace

/// Searches breadth-first from the named rules. This takes linear time, although chains of unnamed
/// rules may be long.
std::string rule_name(const Grammar& grammar, std::uint32_t rule) {
  std::vector<std::optional<std::uint32_t>> owners(grammar.rules.size());
  std::deque<std::uint32_t> todo;
  for (std::uint32_t named = 0; named < grammar.rules.size(); ++named) {
    if (grammar.rules[named].name.empty()) continue;
    owners[named] = named;
    todo.push_back(named);
  }
  for (; !todo.empty() && !owners[rule]; todo.pop_front()) {
    const std::uint32_t caller = todo.front();
    for (const std::uint32_t begin : grammar.rules[caller].alternatives) {
      for (const GrammarSymbol& symbol : alternative_at(grammar, begin)) {
        if (symbol.kind != Kind::Rule || owners[symbol.index]) continue;
        owners[symbol.index] = owners[caller];
        todo.push_back(symbol.index);
      }
    }
  }
  return grammar.rules[owners[rule].value_or(rule)].name;
}

Result<void> check_grammar(const Grammar& grammar) {
  TRY(check_left_recursion(grammar));
  const Flags productive = productive_rules(grammar);
  const auto unproductive = std::ranges::find(productive, false) - productive.begin();
  if (static_cast<std::size_t>(unproductive) < productive.size())
    return cannot_complete(grammar, static_cast<std::uint32_t>(unproductive));
  return {};
}

Result<void> drop_unproductive(Grammar& grammar) {
  const Flags productive = productive_rules(grammar);
  if (!productive[grammar.root]) return cannot_complete(grammar, grammar.root);
  for (GrammarRule& rule : grammar.rules) {
    std::erase_if(rule.alternatives, [&](std::uint32_t begin) {
      return std::ranges::any_of(alternative_at(grammar, begin), [&](const GrammarSymbol& symbol) {
        return symbol.kind == Kind::Rule ? !productive[symbol.index]
                                         : grammar.byte_sets[symbol.index].empty();
      });
    });
  }
  return check_left_recursion(grammar);
}

}  // namespace leasehold
