#include "worker/text/tokenizer/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kSuppressed = "tokenizer.ggml.suppress_tokens";
constexpr std::size_t kMaxTokens = std::size_t{1} << 22;

/// Many files name only the base model's EOS, but their models end each turn with one of these
/// tokens. Other programs stop at these tokens, too.
constexpr std::string_view kEndTokenTexts[] = {
    "<|eot_id|>",    "<|eom_id|>",       "<|end_of_text|>", "<|im_end|>", "<|end|>",
    "<|endoftext|>", "<end_of_turn>",    "<|EOT|>",         "<EOT>",      "<｜end▁of▁sentence｜>",
    "<turn|>",       "<|tool_response>", "<|observation|>", "[e~[",       "[EOT]",
    "[EOS]"};

/// The control tokens of OpenAI's harmony format. A turn of that format has several messages: each
/// ends with "<|end|>", and the turn with one of kHarmonyEnds.
constexpr std::string_view kHarmonyTokens[] = {"<|start|>", "<|channel|>", "<|message|>",
                                               "<|return|>", "<|call|>"};
constexpr std::string_view kHarmonyEnds[] = {"<|return|>", "<|call|>"};
constexpr std::string_view kMessageEnd = "<|end|>";

/// True for a user-defined token that controls turns as a control token does: one with a name in
/// brackets that the chat template writes, such as "<start_of_turn>" of Gemma or "<think>" of Qwen,
/// and any one named "<|…|>". Other user-defined tokens, such as spaces and words, do not control
/// turns.
bool is_turn_marker(std::string_view text, std::string_view chat_template) {
  const bool is_bracketed = (text.starts_with('<') && text.ends_with('>')) ||
                            (text.starts_with('[') && text.ends_with(']'));
  const bool is_chatml = text.starts_with("<|") && text.ends_with("|>");
  return is_chatml || (is_bracketed && chat_template.contains(text));
}

/// The byte of "<0x0A>"; nothing for other text.
std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc{} || end != text.data() + 5) return std::nullopt;
  return byte;
}

}  // namespace

std::unexpected<Error> corrupt_vocabulary(const GgufFile& file, const std::string& what) {
  return fail(Errc::FileCorrupt, fmt::format("{}: {}", file.path(), what));
}

Result<Vocabulary> Vocabulary::read(const GgufFile& file, const VocabularyTraits& traits) {
  Vocabulary vocabulary;
  TRY(vocabulary.read_tokens(file, traits.needs_types));
  TRY(vocabulary.read_suppressed_tokens(file));
  TRY(vocabulary.read_special_ids(file, traits));
  vocabulary.find_end_tokens_by_text();
  TRY(vocabulary.read_pieces(file, traits));
  return vocabulary;
}

Result<void> Vocabulary::read_tokens(const GgufFile& file, bool needs_types) {
  texts = TRY(file.get<std::vector<std::string>>(kTokens));
  if (texts.empty() || texts.size() > kMaxTokens)
    return corrupt_vocabulary(file, fmt::format("{} has {} entries; 1 to {} are allowed", kTokens,
                                                texts.size(), kMaxTokens));
  if (!needs_types && !file.has(kTypes)) {
    kinds.assign(texts.size(), TokenKind::Normal);
    return {};
  }
  const auto types = TRY(file.get<std::vector<std::int32_t>>(kTypes));
  if (types.size() != texts.size())
    return corrupt_vocabulary(file,
                              fmt::format("{} tokens have {} types", texts.size(), types.size()));
  kinds.reserve(types.size());
  for (const std::int32_t type : types) {
    if (type < 1 || type > 6)
      return corrupt_vocabulary(file, fmt::format("token {} has type {}", kinds.size(), type));
    kinds.push_back(static_cast<TokenKind>(type - 1));
  }
  return {};
}

Result<void> Vocabulary::read_suppressed_tokens(const GgufFile& file) {
  if (!file.has(kSuppressed)) return {};
  for (const std::int32_t id : TRY(file.get<std::vector<std::int32_t>>(kSuppressed))) {
    if (id < 0 || static_cast<std::uint32_t>(id) >= size())
      return corrupt_vocabulary(
          file, fmt::format("{} has {}; there are {} tokens", kSuppressed, id, size()));
    suppressed_tokens.push_back(static_cast<TokenId>(id));
  }
  std::ranges::sort(suppressed_tokens);
  const auto repeated = std::ranges::unique(suppressed_tokens);
  suppressed_tokens.erase(repeated.begin(), repeated.end());
  if (suppressed_tokens.size() < size()) return {};
  return corrupt_vocabulary(file, fmt::format("{} has every token", kSuppressed));
}

Result<void> Vocabulary::read_special_ids(const GgufFile& file, const VocabularyTraits& traits) {
  unknown = TRY(special_token_id(file, "unknown", size(), traits.unknown));
  bos = TRY(special_token_id(file, "bos", size(), traits.bos));
  const std::optional<TokenId> eos = TRY(special_token_id(file, "eos", size(), traits.eos));
  const std::optional<TokenId> eot = TRY(special_token_id(file, "eot", size()));
  const std::optional<TokenId> eom = TRY(special_token_id(file, "eom", size()));
  TRY(special_token_id(file, "padding", size()));  // checked, because templates print it
  for (const auto& end : {eos, eot, eom})
    if (end) end_tokens.push_back(*end);
  // These tokens are not text, even if a converter marked them as normal.
  for (const auto& id : {bos, eos, eot, eom})
    if (id && kinds[*id] == TokenKind::Normal) kinds[*id] = TokenKind::Control;
  adds_bos = TRY(file.get_or<bool>("tokenizer.ggml.add_bos_token", traits.adds_bos && bos)) ||
             traits.requires_bos;
  if (adds_bos && !bos)
    return corrupt_vocabulary(file, "add_bos_token is set, but there is no BOS token");
  if (TRY(file.get_or<bool>("tokenizer.ggml.add_eos_token", false))) added_eos = eos;
  if (traits.can_add_space_prefix)
    adds_space_prefix = TRY(file.get_or<bool>("tokenizer.ggml.add_space_prefix", true));
  return {};
}

bool Vocabulary::is_special(TokenId token) const {
  return kinds[token] == TokenKind::Control || kinds[token] == TokenKind::UserDefined;
}

void Vocabulary::find_harmony() {
  std::size_t found = 0;
  for (TokenId token = 0; token < static_cast<TokenId>(size()); ++token)
    found += is_special(token) &&
                     (std::ranges::find(kHarmonyTokens, texts[token]) != std::end(kHarmonyTokens))
                 ? 1
                 : 0;
  has_harmony = found == std::size(kHarmonyTokens);
  if (has_harmony)
    std::erase_if(end_tokens, [&](TokenId token) { return texts[token] == kMessageEnd; });
}

void Vocabulary::find_end_tokens_by_text() {
  find_harmony();
  const auto ends = [&](std::string_view text) {
    const auto has = [&](const auto& list) {
      return std::ranges::find(list, text) != std::end(list);
    };
    return has_harmony ? text != kMessageEnd && (has(kEndTokenTexts) || has(kHarmonyEnds))
                       : has(kEndTokenTexts);
  };
  for (TokenId token = 0; token < static_cast<TokenId>(size()); ++token) {
    if (!is_special(token) || !ends(texts[token])) continue;
    kinds[token] = TokenKind::Control;  // a user's text could produce a user-defined token
    if (std::ranges::find(end_tokens, token) == end_tokens.end()) end_tokens.push_back(token);
  }
}

Result<void> Vocabulary::read_pieces(const GgufFile& file, const VocabularyTraits& traits) {
  const auto chat_template =
      TRY(file.get_or<std::string>("tokenizer.chat_template", std::string()));
  pieces.resize(size());
  for (TokenId token = 0; token < static_cast<TokenId>(size()); ++token) {
    const std::string& text = texts[token];
    if (kinds[token] == TokenKind::Byte) {
      const auto byte = parse_byte_token(text);
      if (!byte)
        return corrupt_vocabulary(
            file, fmt::format("byte token {} is named \"{}\"", token, printable_excerpt(text)));
      pieces[token] = static_cast<char>(*byte);
    } else if (kinds[token] != TokenKind::Control && kinds[token] != TokenKind::Unknown) {
      pieces[token] = traits.piece_of(text, kinds[token]);
    }
    longest_piece_bytes = std::max(longest_piece_bytes, pieces[token].size());
    index_special(token, chat_template);
  }
  return {};
}

void Vocabulary::index_special(TokenId token, std::string_view chat_template) {
  const TokenKind kind = kinds[token];
  const bool is_user_defined = kind == TokenKind::UserDefined;
  if (!is_user_defined && kind != TokenKind::Control && kind != TokenKind::Unknown) return;
  const std::string& text = is_user_defined ? pieces[token] : texts[token];
  if (text.empty()) return;
  using Found = SpecialTokenFinder::Found;
  const bool is_everywhere = is_user_defined && !is_turn_marker(text, chat_template);
  // A text can contain the U+2581 that a token has for a space.
  for (const std::string& spelling : {text, texts[token]}) {
    if (is_user_defined) user_defined.add(spelling, token, Found::Everywhere);
    special.add(spelling, token, is_everywhere ? Found::Everywhere : Found::InTemplateText);
  }
  longest_piece_bytes = std::max(longest_piece_bytes, text.size());
}

}  // namespace leasehold
