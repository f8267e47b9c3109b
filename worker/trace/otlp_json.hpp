/// Writes spans as OTLP in JSON, and reads a collector's answer. Pure.
///
/// Source: https://opentelemetry.io/docs/specs/otlp/ ("JSON Protobuf Encoding"): ids in hex, 64-bit
/// integers as text, enumerators as numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "worker/trace/span.hpp"

namespace leasehold {

/// Names the process whose spans are sent.
struct TraceResource {
  std::string service_name;
  std::string instance;  ///< The worker's name.
};

/// An ExportTraceServiceRequest. `unix_minus_boottime` turns the times of the spans into Unix time.
std::string otlp_json(std::span<const Span> spans, const TraceResource& resource,
                      Duration unix_minus_boottime);

/// The number of spans that the collector says it rejected; 0 for an answer without the number or
/// a malformed one.
std::uint64_t rejected_spans(std::string_view answer);

}  // namespace leasehold
