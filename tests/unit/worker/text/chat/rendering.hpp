/// Renders small templates over the variables of the tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker/text/chat/jinja/template.hpp"

namespace leasehold::testing {

/// word "Lease", space " a b \n", accent "naïve", n 7, half 2.5, list [3, 1, 2],
/// dict {b: 1, a: "x"}, messages of a system, a user and an assistant; the clock is at
/// 2024-11-20 12:00 UTC.
Result<MarkedText> render(std::string_view source, const jinja::Limits& limits = {});

/// The output, or the code and detail of the error.
std::string rendered(std::string_view source);

struct Example {
  std::string_view source;
  std::string_view expected;
};
/// Checks the output of each.
void check_examples(const std::vector<Example>& examples);
/// Checks that each gives an error with this code and the expected text in its detail.
void check_errors(const std::string& code, const std::vector<Example>& examples);

}  // namespace leasehold::testing
