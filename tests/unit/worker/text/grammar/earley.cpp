#include "tests/unit/worker/text/grammar/earley.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace leasehold::testing {
namespace {

using Kind = GrammarSymbol::Kind;

}  // namespace

Earley::Earley(const Grammar& grammar) : grammar_(grammar), columns_(1) {
  std::vector<Item> todo;
  predict(grammar.root, 0, todo);
  complete(columns_[0], std::move(todo));
}

void Earley::predict(std::uint32_t rule, std::size_t from, std::vector<Item>& todo) const {
  for (const std::uint32_t alternative : grammar_.rules[rule].alternatives)
    todo.emplace_back(rule, alternative, from);
}

/// Predicts and completes until the column stops growing: an item that completes a nullable rule
/// may precede the item that waits for it.
void Earley::complete(Column& column, std::vector<Item> todo) {
  const std::size_t here = columns_.size() - 1;
  const auto settle = [&] {
    while (!todo.empty()) {
      const auto [rule, symbol, from] = todo.back();
      todo.pop_back();
      if (!column.insert({rule, symbol, from}).second) continue;
      const GrammarSymbol next = grammar_.symbols[symbol];
      if (next.kind == Kind::Rule) predict(next.index, here, todo);
      if (next.kind != Kind::End) continue;
      for (const auto& [caller, at, begun] : Column(columns_[from])) {
        if (grammar_.symbols[at] == GrammarSymbol{Kind::Rule, rule})
          todo.emplace_back(caller, at + 1, begun);
      }
    }
  };
  settle();
  for (bool grew = true; grew;) {
    const std::size_t before = column.size();
    for (const auto& [rule, symbol, from] : Column(column)) {
      if (from != here || grammar_.symbols[symbol].kind != Kind::End) continue;
      for (const auto& [caller, at, begun] : Column(column)) {
        if (grammar_.symbols[at] == GrammarSymbol{Kind::Rule, rule})
          todo.emplace_back(caller, at + 1, begun);
      }
    }
    settle();
    grew = column.size() > before;
  }
}

bool Earley::push(std::uint8_t byte) {
  std::vector<Item> todo;
  for (const auto& [rule, symbol, from] : columns_.back()) {
    const GrammarSymbol next = grammar_.symbols[symbol];
    if (next.kind == Kind::Bytes && grammar_.byte_sets[next.index].contains(byte))
      todo.emplace_back(rule, symbol + 1, from);
  }
  columns_.emplace_back();
  complete(columns_.back(), std::move(todo));
  return is_alive();
}

bool Earley::push(std::string_view bytes) {
  return std::ranges::all_of(bytes, [this](char c) { return push(static_cast<std::uint8_t>(c)); });
}

bool Earley::may_end() const {
  return std::ranges::any_of(columns_.back(), [this](const Item& item) {
    const auto& [rule, symbol, from] = item;
    return rule == grammar_.root && from == 0 && grammar_.symbols[symbol].kind == Kind::End;
  });
}

bool accepts(const Grammar& grammar, std::string_view text) {
  Earley earley(grammar);
  return earley.push(text) && earley.may_end();
}

void check_texts(const Result<Grammar>& grammar, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& refused) {
  if (!grammar) FAIL(grammar.error().detail);
  for (const std::string& text : accepted) {
    CAPTURE(text);
    CHECK(accepts(*grammar, text));
  }
  for (const std::string& text : refused) {
    CAPTURE(text);
    CHECK_FALSE(accepts(*grammar, text));
  }
}

void check_bad_request(const Result<Grammar>& grammar, const std::string& what) {
  REQUIRE_FALSE(grammar);
  CHECK(grammar.error().code == Errc::BadRequest);
  CHECK_THAT(grammar.error().detail, Catch::Contains(what));
}

}  // namespace leasehold::testing
