/// Regular expressions as grammars of the texts that they match.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/work_budget.hpp"

namespace leasehold {

/// The texts that the expression matches as a whole; anchors at the ends change nothing. The subset
/// is that of schema_pattern.hpp. Errors: BadRequest naming the position in the expression, or that
/// it is too large, or that no text matches it.
Result<Grammar> compile_regex(std::string_view regex, WorkBudget& work);

/// Takes time linear in the expression. Errors: those of its syntax.
Result<void> check_regex(std::string_view regex);

/// An expression that matches this text alone.
std::string regex_of_text(std::string_view text);

}  // namespace leasehold
