#include "tools/monitor/worker_figures.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace leasehold::monitor {
namespace {

using control::Json;
using Labels = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kFirstToken = "leasehold_time_to_first_token_seconds_bucket";
constexpr std::string_view kInterToken = "leasehold_inter_token_latency_seconds_bucket";

struct Sample {
  std::string_view name;
  Labels labels;
  double value = 0;
};

/// Reads `"text"` with the escapes of the exposition format, and removes it from `line`.
std::optional<std::string> quoted(std::string_view& line) {
  if (!line.starts_with('"')) return std::nullopt;
  std::string text;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"') {
      line.remove_prefix(i + 1);
      return text;
    }
    const bool is_escape = line[i] == '\\' && i + 1 < line.size();
    if (is_escape) ++i;
    text += is_escape && line[i] == 'n' ? '\n' : line[i];
  }
  return std::nullopt;
}

/// Reads `{name="text",…}`, which may be missing, and removes it from `line`.
std::optional<Labels> labels_in(std::string_view& line) {
  Labels labels;
  if (!line.starts_with('{')) return labels;
  line.remove_prefix(1);
  while (!line.starts_with('}')) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string name(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    auto text = quoted(line);
    if (!text) return std::nullopt;
    labels.emplace(name, *std::move(text));
    if (line.starts_with(',')) line.remove_prefix(1);
  }
  line.remove_prefix(1);
  return labels;
}

std::optional<double> number_in(std::string_view text) {
  if (text == "+Inf") return HUGE_VAL;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

std::optional<Sample> sample_in(std::string_view line) {
  Sample sample{.name = line.substr(0, line.find_first_of("{ "))};
  line.remove_prefix(sample.name.size());
  auto labels = labels_in(line);
  if (!labels || !line.starts_with(' ')) return std::nullopt;
  const auto value = number_in(line.substr(1));
  if (!value) return std::nullopt;
  sample.labels = *std::move(labels);
  sample.value = *value;
  return sample;
}

std::string label(const Sample& sample, std::string_view name) {
  const auto found = sample.labels.find(name);
  return found == sample.labels.end() ? "" : found->second;
}

/// Returns false for a bound or a count that does not rise.
bool add_bucket(const Sample& sample, LatencyBuckets& buckets) {
  const auto bound = number_in(label(sample, "le"));
  const auto count = static_cast<std::uint64_t>(sample.value);
  const bool rises = bound && (buckets.bounds_s.empty() || *bound > buckets.bounds_s.back()) &&
                     (buckets.counts.empty() || count >= buckets.counts.back());
  if (!rises) return false;
  buckets.bounds_s.push_back(*bound);
  buckets.counts.push_back(count);
  return true;
}

/// Returns false for a sample that cannot be right.
bool take(const Sample& sample, WorkerFigures& figures) {
  const bool is_count = sample.value >= 0 && sample.value < 0x1p63;
  if (!is_count) return false;
  const auto count = static_cast<std::uint64_t>(sample.value);
  if (sample.name == "leasehold_worker_info") {
    figures.worker = label(sample, "worker");
    figures.model = label(sample, "model");
  }
  if (sample.name == "leasehold_requests")
    (label(sample, "state") == "running" ? figures.running : figures.waiting) = count;
  if (sample.name == "leasehold_requests_refused_total" && count > 0)
    figures.refused[label(sample, "code")] = count;
  if (sample.name == "leasehold_refused_keys_total") figures.refused_keys = count;
  if (sample.name == kFirstToken) return add_bucket(sample, figures.first_token);
  if (sample.name == kInterToken) return add_bucket(sample, figures.inter_token);
  return true;
}

Json buckets_json(const LatencyBuckets& buckets) {
  Json bounds = Json::array();
  for (const double bound : buckets.bounds_s)
    bounds.push_back(std::isinf(bound) ? Json() : Json(bound));
  return {{"bounds_s", std::move(bounds)}, {"counts", buckets.counts}};
}

}  // namespace

Json WorkerFigures::to_json() const {
  return {{"worker", worker},
          {"model", model},
          {"running", running},
          {"waiting", waiting},
          {"first_token", buckets_json(first_token)},
          {"inter_token", buckets_json(inter_token)},
          {"refused", refused},
          {"refused_keys", refused_keys}};
}

Result<WorkerFigures> worker_figures(std::string_view page) {
  WorkerFigures figures;
  while (!page.empty()) {
    const auto end = page.find('\n');
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(end == std::string_view::npos ? page.size() : end + 1);
    if (!line.starts_with("leasehold_")) continue;
    const auto sample = sample_in(line);
    if (!sample || !take(*sample, figures)) {
      return fail(Errc::MalformedMessage,
                  fmt::format("the line \"{}\" is not a metric of a worker", line.substr(0, 100)));
    }
  }
  if (figures.worker.empty()) {
    return fail(Errc::MalformedMessage,
                "the page has no leasehold_worker_info; give the address of a worker's --metrics");
  }
  return figures;
}

}  // namespace leasehold::monitor
