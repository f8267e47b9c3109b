/// The tokens of one request as they were delivered: each position once, none left out.
#pragma once

#include <cstdint>
#include <vector>

#include "ipc/control/messages.hpp"

namespace leasehold::tenant {

class TokenLedger {
 public:
  /// MalformedMessage when the position is not the next one; nothing is noted then.
  Result<void> take(const wire::TokenEmitted& token);

  const std::vector<std::int32_t>& tokens() const { return tokens_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tokens_.size()); }

 private:
  std::vector<std::int32_t> tokens_;
};

}  // namespace leasehold::tenant
