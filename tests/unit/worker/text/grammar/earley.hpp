/// Earley's recognizer (1970), written after the paper, as a reference for the matcher. Slow.
#pragma once

#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"

namespace leasehold::testing {

class Earley {
 public:
  explicit Earley(const Grammar& grammar);

  /// Returns false if no text of the grammar begins like this. Later calls have no effect then.
  bool push(std::uint8_t byte);
  bool push(std::string_view bytes);

  bool is_alive() const { return !columns_.back().empty(); }
  /// True if the grammar accepts the text so far.
  bool may_end() const;

 private:
  /// An alternative of a rule, read up to `symbol`, that began in column `from`.
  using Item = std::tuple<std::uint32_t, std::uint32_t, std::size_t>;  // rule, symbol, from
  using Column = std::set<Item>;

  void predict(std::uint32_t rule, std::size_t from, std::vector<Item>& todo) const;
  void complete(Column& column, std::vector<Item> todo);

  const Grammar& grammar_;
  std::vector<Column> columns_;
};

/// True if the grammar accepts the whole text.
bool accepts(const Grammar& grammar, std::string_view text);

/// Checks that there is a grammar and what it accepts.
void check_texts(const Result<Grammar>& grammar, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& refused);

/// Checks that the error is a BadRequest with this text in its detail.
void check_bad_request(const Result<Grammar>& grammar, const std::string& what);

}  // namespace leasehold::testing
