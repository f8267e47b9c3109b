/// The trace that a request belongs to, as W3C Trace Context passes it on.
///
/// Source: https://www.w3.org/TR/trace-context/, version 00.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leasehold {

struct TraceContext {
  std::string trace_id;  ///< 32 lower-case hex digits, not all 0.
  /// 16 lower-case hex digits, not all 0. After `parse` the caller's span, otherwise a new one.
  std::string span_id;
  bool is_sampled = false;  ///< The spans of the trace are recorded.

  /// Reads the value of the header `traceparent`. Returns nothing for an invalid one: other lengths
  /// or characters, upper case, ids of zeros, version ff, or version 00 with more fields. A
  /// later version may have more fields, which are ignored.
  static std::optional<TraceContext> parse(std::string_view traceparent);
  /// A new trace, with a span of its own, from the kernel's random source.
  static TraceContext start(bool is_sampled);
  /// A new span in this trace.
  TraceContext child() const;
  /// The value of `traceparent`, in version 00. The only flag that is passed on is "sampled".
  std::string text() const;

  bool operator==(const TraceContext&) const = default;
};

}  // namespace leasehold
