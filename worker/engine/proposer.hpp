/// Proposes tokens that may follow a text. Whatever it proposes, the text stays the same. A right
/// proposal saves a step; a wrong one costs a row.
///
/// Each sequence has its own, so what one request says never reaches another. Threads: one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold {

class Proposer {
 public:
  virtual ~Proposer() = default;
  /// Appends up to `most` tokens to `proposals`, which is empty. `text` is all of the request's
  /// text, prompt and emitted; it begins with that of the last call.
  virtual void propose(std::span<const TokenId> text, std::uint32_t most,
                       std::vector<TokenId>& proposals) = 0;
};

}  // namespace leasehold
