#include "worker/trace/tracing.hpp"

#include <catch2/catch.hpp>

namespace leasehold {

TEST_CASE("tracing: the caller's flag decides, and the share decides for new traces only") {
  const Tracing all(1.0, "tiny", [](auto) {});
  const Tracing none(0.0, "tiny", [](auto) {});
  TraceContext caller = TraceContext::start(true);

  const auto child = none.begin(caller);
  REQUIRE(child);
  CHECK(child->context.trace_id == caller.trace_id);
  CHECK(child->context.span_id != caller.span_id);
  CHECK(child->parent_span_id == caller.span_id);
  CHECK_FALSE(none.begin(std::nullopt));

  const auto root = all.begin(std::nullopt);
  REQUIRE(root);
  CHECK(root->parent_span_id.empty());
  CHECK(root->context.is_sampled);
  caller.is_sampled = false;
  CHECK_FALSE(all.begin(caller));
}

}  // namespace leasehold
