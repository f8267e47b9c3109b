/// Checks the guarantees that a matcher relies on.
#pragma once

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"

namespace leasehold {

/// Errors: BadRequest naming a rule that no text can complete, or a left-recursive rule. A loop
/// through the last symbol of an alternative after parts that may be empty, as in `(x*)*`, is
/// allowed.
Result<void> check_grammar(const Grammar& grammar);

/// Removes the alternatives that no text can complete. Errors: BadRequest for a root that no text
/// can complete, or a left-recursive rule.
Result<void> drop_unproductive(Grammar& grammar);

/// The rule's name in the source. For a generated rule, the name of the rule that it is part of.
std::string rule_name(const Grammar& grammar, std::uint32_t rule);

}  // namespace leasehold
