/// Another way to tell whether a text fits a grammar: Earley's recogniser (1970), straight from the
/// paper, with none of the matcher's stacks, states or memory. Slow; the judge.
#pragma once

#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "worker/text/grammar/grammar.hpp"

namespace leasehold::testing {

class Earley {
 public:
  explicit Earley(const Grammar& grammar);

  /// False when no text of the grammar begins like this; nothing more is read then.
  bool push(std::uint8_t byte);
  bool push(std::string_view bytes);

  bool is_alive() const { return !columns_.back().empty(); }
  /// The text so far is one of the grammar's.
  bool may_end() const;

 private:
  /// A rule's alternative up to `symbol`, begun in column `from`.
  using Item = std::tuple<std::uint32_t, std::uint32_t, std::size_t>;  // rule, symbol, from
  using Column = std::set<Item>;

  void predict(std::uint32_t rule, std::size_t from, std::vector<Item>& todo) const;
  void complete(Column& column, std::vector<Item> todo);

  const Grammar& grammar_;
  std::vector<Column> columns_;
};

/// The whole text is one of the grammar's.
bool accepts(const Grammar& grammar, std::string_view text);

}  // namespace leasehold::testing
