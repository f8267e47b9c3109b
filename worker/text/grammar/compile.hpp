/// From what a tenant wrote to a grammar.
#pragma once

#include <memory>

#include "worker/text/grammar/grammar.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// Nothing for GrammarKind::None. Errors: BadRequest saying where and what. Takes milliseconds,
/// some tens of them for a text made to be slow: it and what becomes of it are bounded.
Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source);

}  // namespace leasehold
