#include "worker/kv/sampling_lists.hpp"

#include <cstring>

namespace leasehold {
namespace {

bool has_lists(const SamplingParams& params) {
  return !params.logit_bias.empty() || !params.stop_tokens.empty() || !params.stop.empty() ||
         params.grammar.kind != GrammarKind::None;
}

void append_count(std::vector<std::byte>& to, std::size_t count) {
  const auto value = static_cast<std::uint32_t>(count);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Appends the count, then the values.
void append_list(std::vector<std::byte>& to, const auto& values) {
  append_count(to, values.size());
  const auto bytes = std::as_bytes(std::span(values));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::unexpected<Error> corrupt() {
  return fail(Errc::FileCorrupt, "the sampling parameters of a sequence record are damaged");
}

/// Takes a count from the front of `rest`.
Result<std::uint32_t> take_count(std::span<const std::byte>& rest) {
  std::uint32_t value = 0;
  if (rest.size() < sizeof(value)) return corrupt();
  std::memcpy(&value, rest.data(), sizeof(value));
  rest = rest.subspan(sizeof(value));
  return value;
}

template <class List>
Result<void> take_list(std::span<const std::byte>& rest, List& values) {
  using T = typename List::value_type;
  const std::uint32_t n = TRY(take_count(rest));
  if (n > rest.size() / sizeof(T)) return corrupt();
  values.resize(n);
  if (n > 0) std::memcpy(values.data(), rest.data(), n * sizeof(T));
  rest = rest.subspan(n * sizeof(T));
  return {};
}

}  // namespace

std::size_t sampling_lists_bytes(const SamplingParams& params) {
  if (!has_lists(params)) return 0;
  std::size_t bytes = 5 * sizeof(std::uint32_t) + params.logit_bias.size() * sizeof(LogitBias) +
                      params.stop_tokens.size() * sizeof(TokenId) + params.grammar.text.size();
  for (const std::string& stop : params.stop) bytes += sizeof(std::uint32_t) + stop.size();
  return bytes;
}

std::vector<std::byte> pack_sampling_lists(const SamplingParams& params) {
  if (!has_lists(params)) return {};
  std::vector<std::byte> bytes;
  append_list(bytes, params.logit_bias);
  append_list(bytes, params.stop_tokens);
  append_count(bytes, params.stop.size());
  for (const std::string& stop : params.stop) append_list(bytes, stop);
  append_count(bytes, static_cast<std::size_t>(params.grammar.kind));
  append_list(bytes, params.grammar.text);
  return bytes;
}

Result<void> unpack_sampling_lists(std::span<const std::byte> bytes, SamplingParams& params) {
  if (bytes.empty()) return {};
  TRY(take_list(bytes, params.logit_bias));
  TRY(take_list(bytes, params.stop_tokens));
  const std::uint32_t stops = TRY(take_count(bytes));
  if (stops > SamplingParams::kMaxStops) return corrupt();
  params.stop.resize(stops);
  for (std::string& stop : params.stop) TRY(take_list(bytes, stop));
  const std::uint32_t kind = TRY(take_count(bytes));
  if (kind > static_cast<std::uint32_t>(GrammarKind::Regex)) return corrupt();
  params.grammar.kind = static_cast<GrammarKind>(kind);
  TRY(take_list(bytes, params.grammar.text));
  if (!bytes.empty()) return corrupt();
  return {};
}

}  // namespace leasehold
