#include "worker/tokenizer/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/expects.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::uint32_t kNoToken = UINT32_MAX;  // how converters write "there is none"
constexpr std::size_t kMaxTokens = std::size_t{1} << 22;

template <class... Values>
std::unexpected<Error> corrupt(const GgufFile& file, fmt::format_string<Values...> text,
                               Values&&... values) {
  return fail(Errc::FileCorrupt, fmt::format("{}: {}", file.path(),
                                             fmt::format(text, std::forward<Values>(values)...)));
}

/// The byte of "<0x0A>"; nothing for other text.
std::optional<std::uint8_t> byte_named(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc{} || end != text.data() + 5) return std::nullopt;
  return byte;
}

/// Nothing when the file has no such id, or says that there is none.
Result<std::optional<TokenId>> special_id(const GgufFile& file, std::string_view name,
                                          std::uint32_t fallback, std::uint32_t n_vocab) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const auto id = TRY(file.get_or<std::uint32_t>(key, fallback));
  if (id == kNoToken) return std::nullopt;
  if (id >= n_vocab) return corrupt(file, "{} is {} of {} tokens", key, id, n_vocab);
  return static_cast<TokenId>(id);
}

}  // namespace

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool matches = text.substr(at).starts_with(from);
    result += matches ? to : text.substr(at, 1);
    at += matches ? from.size() : 1;
  }
  return result;
}

Result<Tokenizer> Tokenizer::from_metadata(const GgufFile& file) {
  const auto model = TRY(file.get<std::string>("tokenizer.ggml.model"));
  if (model != "llama")
    return fail(Errc::UnsupportedModel,
                fmt::format("{}: the tokenizer is \"{}\"; this build reads \"llama\"", file.path(),
                            shown(model)));
  Tokenizer tokenizer;
  TRY(tokenizer.read_vocabulary(file));
  TRY(tokenizer.read_special_ids(file));
  return tokenizer;
}

Result<void> Tokenizer::read_vocabulary(const GgufFile& file) {
  texts_ = TRY(file.get<std::vector<std::string>>(kTokens));
  scores_ = TRY(file.get<std::vector<float>>(kScores));
  const auto types = TRY(file.get<std::vector<std::int32_t>>(kTypes));
  if (texts_.empty() || texts_.size() > kMaxTokens)
    return corrupt(file, "{} has {} entries; 1 to {} are allowed", kTokens, texts_.size(),
                   kMaxTokens);
  if (scores_.size() != texts_.size() || types.size() != texts_.size())
    return corrupt(file, "{} tokens have {} scores and {} types", texts_.size(), scores_.size(),
                   types.size());
  pieces_.resize(texts_.size());
  for (TokenId token = 0; contains(token); ++token) {
    const std::int32_t type = types[static_cast<std::size_t>(token)];
    // GGUF's numbers: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    if (type < 1 || type > 6) return corrupt(file, "token {} has type {}", token, type);
    TRY(index_token(file, token, static_cast<Kind>(type - 1)));
  }
  std::ranges::stable_sort(user_defined_, std::ranges::greater{},
                           [this](TokenId token) { return texts_[token].size(); });
  return {};
}

Result<void> Tokenizer::index_token(const GgufFile& file, TokenId token, Kind kind) {
  std::string& text = texts_[token];
  // NaN has no place in an order of merges.
  if (std::isnan(scores_[token]))
    return corrupt(file, "the score of token {} is not a number", token);
  switch (kind) {
    case Kind::Normal:
      by_text_[text] = token;  // of two alike the later one counts, as in other readers
      break;
    case Kind::UserDefined:
      text = replaced(text, " ", kSpaceMark);  // converters write these with plain spaces
      if (!text.empty()) user_defined_.push_back(token);
      break;
    case Kind::Byte: {
      const auto byte = byte_named(text);
      if (!byte) return corrupt(file, "byte token {} is named \"{}\"", token, shown(text));
      by_byte_[*byte] = token;
      pieces_[token] = static_cast<char>(*byte);
      return {};
    }
    case Kind::Unused:
      break;
    case Kind::Unknown:
    case Kind::Control:
      return {};
  }
  pieces_[token] = replaced(text, kSpaceMark, " ");
  longest_piece_bytes_ = std::max(longest_piece_bytes_, pieces_[token].size());
  return {};
}

Result<void> Tokenizer::read_special_ids(const GgufFile& file) {
  const auto unknown = TRY(special_id(file, "unknown", 0, n_vocab()));
  if (!unknown) return corrupt(file, "the vocabulary has no unknown token");
  unknown_ = *unknown;
  bos_ = TRY(special_id(file, "bos", 1, n_vocab()));
  if (const auto eos = TRY(special_id(file, "eos", 2, n_vocab()))) ends_.push_back(*eos);
  if (const auto eot = TRY(special_id(file, "eot", kNoToken, n_vocab()))) ends_.push_back(*eot);
  adds_bos_ = TRY(file.get_or<bool>("tokenizer.ggml.add_bos_token", true));
  adds_space_prefix_ = TRY(file.get_or<bool>("tokenizer.ggml.add_space_prefix", true));
  if (adds_bos_ && !bos_) return corrupt(file, "a BOS token is wanted and there is none");
  return {};
}

std::string_view Tokenizer::piece(TokenId token) const {
  expects(contains(token), "the token is of this vocabulary");
  return pieces_[token];
}

bool Tokenizer::is_end(TokenId token) const {
  return std::ranges::find(ends_, token) != ends_.end();
}

}  // namespace leasehold
