/// Models with a defect that one request meets and others do not.
#pragma once

#include <string>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::testing {

/// The path of a copy of the bundled model whose embedding of `token` is NaN. The caller removes
/// it.
std::string model_with_nan_embedding(TokenId token);

}  // namespace leasehold::testing
