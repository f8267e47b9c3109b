/// Logs each problem once for as long as it lasts.
///
/// Threads: one.
#pragma once

#include <spdlog/spdlog.h>

#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cli/print_error.hpp"

namespace leasehold::gateway {

class LastingProblems {
 public:
  /// `what` begins each line. Lifetime: a literal.
  explicit LastingProblems(std::string_view what) : what_(what) {}

  /// Takes the problems of now, as sentences, and logs the new ones.
  void report(std::vector<std::string> problems) {
    std::set<std::string> now(std::make_move_iterator(problems.begin()),
                              std::make_move_iterator(problems.end()));
    for (const std::string& problem : now)
      if (!last_.contains(problem)) spdlog::warn("{} reason=\"{}\"", what_, printable(problem));
    last_ = std::move(now);
  }

 private:
  std::string_view what_;
  std::set<std::string> last_;
};

}  // namespace leasehold::gateway
