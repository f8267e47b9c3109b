#include "worker/http/api/sampling_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace leasehold::http {
namespace {

constexpr std::uint32_t kMostTokenId = 0x7FFF'FFFF;
constexpr std::uint32_t kMostTokens = 1u << 20;

struct NumberField {
  std::array<const char*, 2> names;
  float wire::Sampling::* value;
  NumberRange range;
};
constexpr NumberField kNumbers[] = {
    {{"temperature"}, &wire::Sampling::temperature, SamplingParams::kTemperatures},
    {{"top_p"}, &wire::Sampling::top_p, SamplingParams::kProbabilities},
    {{"min_p"}, &wire::Sampling::min_p, SamplingParams::kProbabilities},
    {{"typical_p"}, &wire::Sampling::typical_p, SamplingParams::kProbabilities},
    {{"repetition_penalty", "repeat_penalty"},
     &wire::Sampling::repetition_penalty,
     SamplingParams::kRepetitionPenalties},
    {{"presence_penalty"}, &wire::Sampling::presence_penalty, SamplingParams::kPenalties},
    {{"frequency_penalty"}, &wire::Sampling::frequency_penalty, SamplingParams::kPenalties},
};

std::span<const char* const> names_of(const NumberField& field) {
  return std::span(field.names).first(field.names[1] == nullptr ? 1 : 2);
}

bool is_minus_one(const Field& field) {
  return field && whole_number(field.json()) == -1;
}

/// Reads a count for which 0 means all. vLLM and llama.cpp write -1 instead.
Read<std::uint32_t> count_or_all(const Field& field, std::uint32_t otherwise) {
  if (is_minus_one(field)) return 0u;
  return count_of(field, {}, otherwise);
}

/// In vLLM and llama.cpp -1 asks for any seed. OpenAI's seeds may be negative.
Read<void> read_seed(const Field& field, std::uint64_t& seed) {
  if (!field || is_minus_one(field)) return {};
  const bool is_unsigned = field.json().is_number_unsigned();
  const auto whole = whole_number(field.json());
  if (!is_unsigned && !whole)
    return field.refuse(
        fmt::format("seed is a whole number of 64 bits, got {}", shown(field.json())));
  seed = is_unsigned ? field.json().get<std::uint64_t>() : static_cast<std::uint64_t>(*whole);
  return {};
}

/// Reads a text or an array of texts.
Read<void> read_stop(const Field& field, std::vector<std::string>& stops) {
  if (!field) return {};
  const bool is_one = field.json().is_string();
  if (!is_one) TRY(check_array(field, SamplingParams::kMaxStops));
  for (std::size_t i = 0; i < (is_one ? 1 : field.json().size()); ++i) {
    const Field one = is_one ? field : field.at(i);
    std::string stop = TRY(text_of(one, {}));
    if (stop.empty() || stop.size() > SamplingParams::kMaxStopBytes)
      return one.refuse(
          fmt::format("{} is a text of 1 to {} bytes", one.path(), SamplingParams::kMaxStopBytes));
    stops.push_back(std::move(stop));
  }
  return {};
}

CountRange token_ids(std::uint32_t n_vocab) {
  return {.least = 0, .most = n_vocab == 0 ? kMostTokenId : n_vocab - 1};
}

Read<void> read_stop_tokens(const Field& field, std::uint32_t n_vocab,
                            std::vector<std::int32_t>& tokens) {
  if (!field) return {};
  TRY(check_array(field, SamplingParams::kMaxStopTokens));
  for (std::size_t i = 0; i < field.json().size(); ++i)
    tokens.push_back(TRY(token_id(field.at(i), n_vocab)));
  return {};
}

Read<float> bias_of(const Field& field) {
  if (!field) return field.refuse(fmt::format("{} is a number, got null", field.path()));
  return number_of(field, SamplingParams::kBiases, 0.0f);
}

/// Reads one member of an object such as {"15043": -1.5}.
Read<void> add_bias(const Field& field, const std::string& key, std::uint32_t n_vocab,
                    wire::TokenBiases& biases) {
  const Field bias = field[key];
  std::uint32_t token = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
  const bool is_id = error == std::errc{} && end == key.data() + key.size() && !key.empty() &&
                     token <= token_ids(n_vocab).most;
  if (!is_id)
    return bias.refuse(
        fmt::format("a key of logit_bias is a token id from 0 to {}, written as text",
                    token_ids(n_vocab).most));
  biases.by_token[static_cast<std::int32_t>(token)] = TRY(bias_of(bias));
  return {};
}

/// Checked before the members are read, because add_bias searches the object for each member.
Read<void> check_bias_count(const Field& field) {
  if (field.json().size() <= SamplingParams::kMaxLogitBiases) return {};
  return field.refuse(fmt::format("logit_bias has {} entries; at most {} are allowed",
                                  field.json().size(), SamplingParams::kMaxLogitBiases));
}

/// Reads an object, or llama.cpp's array of pairs such as [[15043, -1.5]].
Read<void> read_biases(const Field& field, std::uint32_t n_vocab, wire::TokenBiases& biases) {
  if (!field) return {};
  if (field.json().is_object()) {
    TRY(check_bias_count(field));
    for (const auto& [key, bias] : field.json().items()) TRY(add_bias(field, key, n_vocab, biases));
    return {};
  }
  TRY(check_array(field, SamplingParams::kMaxLogitBiases));
  for (std::size_t i = 0; i < field.json().size(); ++i) {
    const Field pair = field.at(i);
    if (!pair.is_array() || pair.json().size() != 2)
      return pair.refuse(fmt::format("{} is a token id and its bias, [ID, BIAS]", pair.path()));
    biases.by_token[TRY(token_id(pair.at(0), n_vocab))] = TRY(bias_of(pair.at(1)));
  }
  return {};
}

/// In llama.cpp, a window of 0 tokens switches the penalties off.
Read<void> read_window(const BodyFields& body, wire::Sampling& out) {
  constexpr const char* kNames[] = {"penalty_window", "repeat_last_n"};
  const Field window = TRY(one_of(body, kNames));
  out.penalty_window = TRY(count_or_all(window, out.penalty_window));
  if (!window || window.path() != kNames[1] || window.json() != 0) return {};
  out.repetition_penalty = 1.0f;
  out.presence_penalty = out.frequency_penalty = 0.0f;
  return {};
}

}  // namespace

Read<std::int32_t> token_id(const Field& field, std::uint32_t n_vocab) {
  if (!field) return field.refuse(fmt::format("{} is a token id, got null", field.path()));
  return static_cast<std::int32_t>(TRY(count_of(field, token_ids(n_vocab), 0)));
}

Read<Field> one_of(const BodyFields& body, std::span<const char* const> names) {
  Field first = body[names.front()];
  for (const char* name : names.subspan(1)) {
    const Field other = body[name];
    if (!other) continue;
    if (!first) {
      first = other;
    } else if (first.json() != other.json()) {
      return other.refuse(fmt::format("{} and {} are the same; send one", first.path(), name));
    }
  }
  return first;
}

Read<void> read_sampling(const BodyFields& body, std::uint32_t n_vocab, wire::Sampling& out) {
  for (const NumberField& number : kNumbers) {
    const Field field = TRY(one_of(body, names_of(number)));
    out.*number.value = TRY(number_of(field, number.range, out.*number.value));
  }
  TRY(read_window(body, out));
  out.top_k = TRY(count_or_all(body["top_k"], out.top_k));
  out.min_tokens = TRY(count_of(body["min_tokens"], {.least = 0, .most = kMostTokens}, 0));
  out.include_stop_str_in_output = TRY(flag_of(body["include_stop_str_in_output"], false));
  TRY(read_seed(body["seed"], out.seed));
  TRY(read_stop(body["stop"], out.stop.all));
  TRY(read_stop_tokens(body["stop_token_ids"], n_vocab, out.stop_token_ids));
  return read_biases(body["logit_bias"], n_vocab, out.logit_bias);
}

}  // namespace leasehold::http
