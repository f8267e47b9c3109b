#include "common/trace_context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/random.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kTraceIdDigits = 32;
constexpr std::size_t kSpanIdDigits = 16;
constexpr std::size_t kTextBytes = 2 + 1 + kTraceIdDigits + 1 + kSpanIdDigits + 1 + 2;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

/// Replaces the id of zeros, which is invalid.
std::string new_span_id() {
  return fmt::format("{:016x}", std::max<std::uint64_t>(1, random_bits()));
}

}  // namespace

std::optional<TraceContext> TraceContext::parse(std::string_view text) {
  if (text.size() < kTextBytes) return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace_id = text.substr(3, kTraceIdDigits);
  const std::string_view span_id = text.substr(4 + kTraceIdDigits, kSpanIdDigits);
  const std::string_view flags = text.substr(5 + kTraceIdDigits + kSpanIdDigits, 2);
  const std::string_view rest = text.substr(kTextBytes);
  const bool has_dashes = text[2] == '-' && text[3 + kTraceIdDigits] == '-' &&
                          text[4 + kTraceIdDigits + kSpanIdDigits] == '-';
  const bool is_valid = has_dashes && is_hex(version) && version != "ff" && is_id(trace_id) &&
                        is_id(span_id) && is_hex(flags);
  const bool may_follow = rest.empty() || (version != "00" && rest.front() == '-');
  if (!is_valid || !may_follow) return std::nullopt;
  const char low = flags.back();
  const int low_bits = low <= '9' ? low - '0' : low - 'a' + 10;
  return TraceContext{.trace_id = std::string(trace_id),
                      .span_id = std::string(span_id),
                      .is_sampled = (low_bits & 1) != 0};
}

TraceContext TraceContext::start(bool is_sampled) {
  return {.trace_id = fmt::format("{:016x}{}", random_bits(), new_span_id()),
          .span_id = new_span_id(),
          .is_sampled = is_sampled};
}

TraceContext TraceContext::child() const {
  TraceContext own = *this;
  own.span_id = new_span_id();
  return own;
}

std::string TraceContext::text() const {
  return fmt::format("00-{}-{}-0{}", trace_id, span_id, is_sampled ? 1 : 0);
}

}  // namespace leasehold
