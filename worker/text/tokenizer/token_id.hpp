/// The number of a token.
#pragma once

#include <cstdint>

namespace leasehold {

/// 0 … n_vocab - 1.
using TokenId = std::int32_t;

}  // namespace leasehold
