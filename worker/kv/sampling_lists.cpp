#include "worker/kv/sampling_lists.hpp"

#include <cstring>

namespace leasehold {
namespace {

bool has_lists(const SamplingParams& params) {
  return !params.logit_bias.empty() || !params.stop_tokens.empty() || !params.stop.empty() ||
         params.grammar.kind != GrammarKind::None;
}

class Packer {
 public:
  template <class T>
  void add(const T* values, std::size_t count) {
    const auto* from = reinterpret_cast<const std::byte*>(values);
    bytes_.insert(bytes_.end(), from, from + count * sizeof(T));
  }
  /// Adds the count, then the values.
  template <class List>
  void add_list(const List& values) {
    add_count(values.size());
    add(values.data(), values.size());
  }
  void add_count(std::size_t count) {
    const auto value = static_cast<std::uint32_t>(count);
    add(&value, 1);
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::unexpected<Error> corrupt() {
  return fail(Errc::FileCorrupt, "the sampling parameters of a sequence record are damaged");
}

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}

  Result<std::uint32_t> count() {
    std::uint32_t value = 0;
    if (rest_.size() < sizeof(value)) return corrupt();
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_ = rest_.subspan(sizeof(value));
    return value;
  }
  template <class List>
  Result<void> list(List& values) {
    using T = typename List::value_type;
    const std::uint32_t n = TRY(count());
    if (n > rest_.size() / sizeof(T)) return corrupt();
    values.resize(n);
    if (n > 0) std::memcpy(values.data(), rest_.data(), n * sizeof(T));
    rest_ = rest_.subspan(n * sizeof(T));
    return {};
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

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
  Packer packer;
  packer.add_list(params.logit_bias);
  packer.add_list(params.stop_tokens);
  packer.add_count(params.stop.size());
  for (const std::string& stop : params.stop) packer.add_list(stop);
  packer.add_count(static_cast<std::size_t>(params.grammar.kind));
  packer.add_list(params.grammar.text);
  return std::move(packer).take();
}

Result<void> unpack_sampling_lists(std::span<const std::byte> bytes, SamplingParams& params) {
  if (bytes.empty()) return {};
  Unpacker unpacker(bytes);
  TRY(unpacker.list(params.logit_bias));
  TRY(unpacker.list(params.stop_tokens));
  const std::uint32_t stops = TRY(unpacker.count());
  if (stops > SamplingParams::kMaxStops) return corrupt();
  params.stop.resize(stops);
  for (std::string& stop : params.stop) TRY(unpacker.list(stop));
  const std::uint32_t kind = TRY(unpacker.count());
  if (kind > static_cast<std::uint32_t>(GrammarKind::JsonSchema)) return corrupt();
  params.grammar.kind = static_cast<GrammarKind>(kind);
  TRY(unpacker.list(params.grammar.text));
  if (!unpacker.at_end()) return corrupt();
  return {};
}

}  // namespace leasehold
