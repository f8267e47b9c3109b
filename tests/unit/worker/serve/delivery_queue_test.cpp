#include "worker/serve/delivery_queue.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

namespace {

const RequestId kA{"req-a"};
const RequestId kB{"req-b"};

Completed revoked(const RequestId& request) {
  return {.engine_request_id = request,
          .reason = CompletionReason::Revoked,
          .revocation = RevocationInfo{.lease = {.slot = 1, .generation = 1}}};
}

/// Formats events as "a0 b0 a!": tokens with their position, and completions.
std::string drain_all(DeliveryQueue& delivery_queue) {
  std::string all;
  while (const auto next = delivery_queue.take()) {
    if (const auto* token = std::get_if<Token>(&*next)) {
      all += token->engine_request_id.value.back() + std::to_string(token->position) + " ";
    } else if (const auto* completed = std::get_if<Completed>(&*next)) {
      all += completed->engine_request_id.value.back() + std::string("! ");
    }
  }
  return all;
}

}  // namespace

TEST_CASE("delivery queue: the events of a step keep their order") {
  DeliveryQueue delivery_queue;
  delivery_queue.add({Token{kA, 1, 0}, Token{kB, 2, 0}});
  delivery_queue.add({Token{kA, 3, 1}});
  CHECK(drain_all(delivery_queue) == "a0 b0 a1 ");
}

TEST_CASE("delivery queue: an early completion overtakes tokens of other requests, never its own") {
  DeliveryQueue delivery_queue;
  delivery_queue.add({Token{kA, 1, 0}, Token{kB, 2, 0}, Token{kA, 3, 1}});
  delivery_queue.add_urgent(revoked(kB));
  CHECK(drain_all(delivery_queue) == "b0 b! a0 a1 ");
}
