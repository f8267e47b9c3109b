#include "worker/trace/tracing.hpp"

#include "common/random.hpp"

namespace leasehold {

std::optional<SpanStart> Tracing::begin(const std::optional<TraceContext>& caller) const {
  if (caller && !caller->is_sampled) return std::nullopt;
  if (caller) return SpanStart{.context = caller->child(), .parent_span_id = caller->span_id};
  const double drawn = static_cast<double>(random_bits() >> 11) * 0x1.0p-53;
  if (drawn >= share_) return std::nullopt;
  return SpanStart{.context = TraceContext::start(true), .parent_span_id = {}};
}

}  // namespace leasehold
