#include "tests/checks/bench/peer_output.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr const char* kBench = "llama-bench";
constexpr const char* kBatchedBench = "llama-batched-bench";
constexpr std::size_t kShownBytes = 120;

std::unexpected<Error> malformed(const char* program, const std::string& what,
                                 std::string_view text) {
  return fail(Errc::MalformedMessage,
              fmt::format("{} printed {}: \"{}\"; use a llama.cpp that prints JSON lines", program,
                          what, text.substr(0, kShownBytes)));
}

/// The lines that begin like an object. The programs also print empty lines and banners.
Result<std::vector<Json>> objects_in(std::string_view output, const char* program) {
  std::vector<Json> objects;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    if (!line.starts_with('{')) continue;
    objects.push_back(Json::parse(line, nullptr, false));
    if (!objects.back().is_object()) return malformed(program, "a line that is not JSON", line);
  }
  if (objects.empty()) return malformed(program, "no JSON line", output);
  return objects;
}

std::optional<double> number(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// A text field, or an integer field as text.
std::optional<std::string> word(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return std::nullopt;
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  return found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

/// The value of `speed` in the object; nullopt if the value or the number of threads is not usable.
std::optional<double> usable_speed(const Json& object, const char* speed, std::uint32_t threads) {
  const std::optional<double> value = number(object, speed);
  if (number(object, "n_threads") != threads || !value || !std::isfinite(*value) || *value <= 0)
    return std::nullopt;
  return value;
}

}  // namespace

Result<PeerBenchOutput> parse_peer_bench(std::string_view output, std::uint32_t threads) {
  PeerBenchOutput parsed;
  for (const Json& object : TRY(objects_in(output, kBench))) {
    const auto commit = word(object, "build_commit");
    const auto build = word(object, "build_number");
    const auto format = word(object, "model_type");
    const auto prompt = number(object, "n_prompt");
    const auto answer = number(object, "n_gen");
    const auto speed = usable_speed(object, "avg_ts", threads);
    if (!commit || !build || !format || !prompt || !answer || !speed)
      return malformed(kBench, fmt::format("no usable result for {} threads", threads),
                       object.dump());
    parsed.version = *commit + " (" + *build + ")";
    parsed.format = *format;
    if (*prompt > 0 && *answer == 0) parsed.prefill = *speed;
    if (*prompt == 0 && *answer > 0) parsed.decode = *speed;
  }
  if (parsed.prefill == 0 || parsed.decode == 0)
    return malformed(kBench, "no result for the prompt or none for the answer", output);
  return parsed;
}

Result<Figures> parse_peer_batches(std::string_view output, std::uint32_t threads) {
  Figures figures;
  for (const Json& object : TRY(objects_in(output, kBatchedBench))) {
    const auto sequences = number(object, "pl");
    const auto speed = usable_speed(object, "speed_tg", threads);
    if (!sequences || !speed)
      return malformed(kBatchedBench, fmt::format("no usable result for {} threads", threads),
                       object.dump());
    if (*sequences == kSmallBatch) figures["batch_8"] = *speed;
    if (*sequences == kLargeBatch) figures["batch_32"] = *speed;
  }
  if (figures.size() != 2)
    return malformed(kBatchedBench, "no result for a batch of 8 or none for 32", output);
  return figures;
}

}  // namespace leasehold::bench
