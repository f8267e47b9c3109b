#include "worker/trace/otlp_json.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "common/cli/version.hpp"

namespace leasehold {
namespace {

using Json = nlohmann::json;

constexpr int kStatusError = 2;

struct ValueWriter {
  Json operator()(const std::string& text) const { return {{"stringValue", text}}; }
  Json operator()(std::int64_t number) const { return {{"intValue", std::to_string(number)}}; }
  Json operator()(double number) const { return {{"doubleValue", number}}; }
  Json operator()(const std::vector<std::string>& texts) const {
    Json values = Json::array();
    for (const std::string& text : texts) values.push_back((*this)(text));
    return {{"arrayValue", {{"values", std::move(values)}}}};
  }
};

Json json_of(const SpanAttributes& attributes) {
  Json all = Json::array();
  for (const auto& [key, value] : attributes)
    all.push_back({{"key", key}, {"value", std::visit(ValueWriter{}, value)}});
  return all;
}

std::string unix_time(TimePoint at, Duration unix_minus_boottime) {
  return std::to_string((at + unix_minus_boottime).boottime_ns);
}

Json json_of(const Span& span, Duration unix_minus_boottime) {
  Json json{{"traceId", span.context.trace_id},
            {"spanId", span.context.span_id},
            {"name", span.name},
            {"kind", static_cast<int>(span.kind)},
            {"startTimeUnixNano", unix_time(span.begin, unix_minus_boottime)},
            {"endTimeUnixNano", unix_time(span.end, unix_minus_boottime)}};
  if (!span.parent_span_id.empty()) json["parentSpanId"] = span.parent_span_id;
  if (!span.attributes.empty()) json["attributes"] = json_of(span.attributes);
  if (!span.error.empty()) json["status"] = {{"code", kStatusError}, {"message", span.error}};
  for (const SpanEvent& event : span.events)
    json["events"].push_back({{"name", event.name},
                              {"timeUnixNano", unix_time(event.at, unix_minus_boottime)},
                              {"attributes", json_of(event.attributes)}});
  return json;
}

}  // namespace

std::string otlp_json(std::span<const Span> spans, const TraceResource& resource,
                      Duration unix_minus_boottime) {
  Json all = Json::array();
  for (const Span& span : spans) all.push_back(json_of(span, unix_minus_boottime));
  const SpanAttributes identity{{"service.name", resource.service_name},
                                {"service.instance.id", resource.instance},
                                {"service.version", std::string(version())}};
  const Json scope{{"scope", {{"name", "leasehold-worker"}}}, {"spans", std::move(all)}};
  const Json body{{"resourceSpans",
                   {{{"resource", {{"attributes", json_of(identity)}}},
                     {"scopeSpans", Json::array({scope})}}}}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::uint64_t rejected_spans(std::string_view answer) {
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_object()) return 0;
  const auto partial = json.find("partialSuccess");
  if (partial == json.end() || !partial->is_object()) return 0;
  const auto rejected = partial->find("rejectedSpans");
  if (rejected == partial->end()) return 0;
  if (rejected->is_number_unsigned()) return rejected->get<std::uint64_t>();
  if (!rejected->is_string()) return 0;
  const std::string& text = rejected->get_ref<const std::string&>();
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? count : 0;
}

}  // namespace leasehold
