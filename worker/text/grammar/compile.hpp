/// Compiles the grammar of a request.
#pragma once

#include <memory>

#include "worker/text/grammar/grammar.hpp"
#include "worker/text/grammar/work_budget.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// Returns null for GrammarKind::None. Errors: BadRequest naming the place and the cause. Takes
/// milliseconds, tens of them for hostile input; the size of input and result is bounded.
Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source,
                                                       WorkBudget& work);

/// The same, with its own budget.
Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source);

}  // namespace leasehold
