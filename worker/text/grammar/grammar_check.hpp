/// What a matcher relies on, checked before there is one.
#pragma once

#include "common/result.hpp"
#include "worker/text/grammar/grammar.hpp"

namespace leasehold {

/// BadRequest naming a rule that no text can complete, or one that comes back to itself at its left
/// end. A loop through the last place of an alternative, behind parts that may be empty, is
/// harmless
/// (`(x*)*`) and allowed.
Result<void> check_grammar(const Grammar& grammar);

}  // namespace leasehold
