/// One span of a trace, as OpenTelemetry defines it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.hpp"
#include "common/trace_context.hpp"

namespace leasehold {

struct SpanAttribute {
  std::string key;
  std::variant<std::string, std::int64_t, double, std::vector<std::string>> value;
};
using SpanAttributes = std::vector<SpanAttribute>;

struct SpanEvent {
  std::string_view name;  ///< A literal.
  TimePoint at;
  SpanAttributes attributes;
};

/// The values are those of OTLP.
enum class SpanKind : std::uint8_t { Internal = 1, Server = 2 };

struct Span {
  TraceContext context;        ///< The trace, and this span's id.
  std::string parent_span_id;  ///< Empty: the root of its trace.
  std::string name;
  SpanKind kind = SpanKind::Internal;
  TimePoint begin;
  TimePoint end;  ///< Not before `begin`.
  SpanAttributes attributes;
  std::vector<SpanEvent> events;
  std::string error;  ///< Empty: no error.
};

/// Counts since the start.
struct SpanCounts {
  std::uint64_t exported = 0;
  std::uint64_t dropped = 0;  ///< Not accepted by a collector.
  bool operator==(const SpanCounts&) const = default;
};

}  // namespace leasehold
