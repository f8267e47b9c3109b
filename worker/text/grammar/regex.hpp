/// Regular expressions as grammars of the texts that they match.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/work_budget.hpp"

namespace leasehold {

/// Matches the texts that the expression matches as a whole, so anchors at its ends change nothing.
/// schema_pattern.hpp defines the supported subset. Errors: BadRequest naming the position in the
/// expression, or that it is too large, or that no text matches it.
Result<Grammar> compile_regex(std::string_view regex, WorkBudget& work);

/// Checks only the syntax, in time linear in the expression. Errors: those of the syntax.
Result<void> check_regex(std::string_view regex);

/// An expression that matches only this text.
std::string regex_of_text(std::string_view text);

}  // namespace leasehold
