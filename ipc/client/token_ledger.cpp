#include "ipc/client/token_ledger.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace leasehold::client {

Result<void> TokenLedger::take(const wire::TokenEmitted& token) {
  if (token.position != size()) {
    return fail(Errc::MalformedMessage,
                fmt::format("the worker sent position {} {}, expected {}", token.position,
                            token.position < size() ? "twice" : "too early", size()));
  }
  tokens_.push_back(token.token);
  return {};
}

}  // namespace leasehold::client
