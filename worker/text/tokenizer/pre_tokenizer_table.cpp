#include "worker/text/tokenizer/pre_tokenizer_table.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

namespace leasehold {
namespace {

// Each expression is the published one (tokenizer.json, tiktoken's pattern strings), split over
// lines and with characters outside ASCII written as numbers.

// GPT-2's encoder (Radford et al. 2019); the ByteLevel pre-tokenizer of Hugging Face.
constexpr const char* kGpt2Words =
    R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)re";

constexpr const char* kGpt2[] = {kGpt2Words};

// tiktoken's cl100k_base; also Llama 3.
constexpr const char* kLlama3[] = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

constexpr const char* kQwen2[] = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

// Qwen 3.5: marks belong to the letters before them.
constexpr const char* kQwen35[] = {
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)re"
    R"re( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

// Digits one by one, then GPT-2's words.
constexpr const char* kDigitByDigit[] = {R"re(\p{N})re", kGpt2Words};

// Converters wrote this name before they knew the models' own expressions.
constexpr const char* kDefault[] = {R"re([\p{P}\$\+<=>\^~\|]+)re", kGpt2Words, R"re(\p{N}+)re",
                                    R"re([0-9][0-9][0-9])re"};

constexpr const char* kFalcon[] = {R"re([\p{P}\$\+<=>\^~\|`]+)re", kGpt2Words,
                                   R"re([0-9][0-9][0-9])re"};

// CJK ideographs, everything from U+0800 up to them, and Hangul.
constexpr const char* kDeepSeekIdeographs =
    R"re([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)re";

// Letters with case, one range at a time.
constexpr const char* kDeepSeekLetters =
    R"re(\s?[)re"
    R"re(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})re"
    R"re(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D})re"
    R"re(\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})re"
    R"re(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})re"
    R"re(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})re"
    R"re(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})re"
    R"re(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59})re"
    R"re(\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})re"
    R"re(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})re"
    R"re(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})re"
    R"re(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128})re"
    R"re(\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149})re"
    R"re(\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE})re"
    R"re(\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})re"
    R"re(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})re"
    R"re(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})re"
    R"re(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})re"
    R"re(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})re"
    R"re(]+)re";

constexpr const char* kDeepSeekLlm[] = {
    R"re([\r\n])re", kDeepSeekLetters,
    R"re(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)re",
    // Published as \s+$. This matches the same text in linear time when PCRE2 interprets.
    R"re((?<!\s)\s++$)re", kDeepSeekIdeographs, R"re(\p{N}+)re"};

constexpr const char* kDeepSeekCoder[] = {R"re([\r\n])re", R"re(\s?\p{L}+)re", R"re(\s?\p{P}+)re",
                                          kDeepSeekIdeographs, R"re(\p{N})re"};

constexpr const char* kDeepSeekV3[] = {
    R"re(\p{N}{1,3})re", R"re([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re",
    (R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)re"
     R"re( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re")};

// tiktoken's o200k_base.
constexpr const char* kGpt4o[] = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)re"
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

constexpr const char* kTekken[] = {
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)re"
    R"re([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)re"
    R"re(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

// tokenization_kimi.py: o200k_base with Chinese characters apart. PCRE2 has no intersections, so
// the published [letters&&[^\p{Han}]] are written as the complement of all other characters.
// \p{Han} alone would include punctuation that Chinese shares with other scripts.
constexpr const char* kKimiK2[] = {
    R"re(\p{sc:Han}+|)re"
    R"re([^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]*)re"
    R"re([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re([^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]+)re"
    R"re([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)re"
    R"re(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re"};

// Gemma 4 merges across words. No token joins a line end to another character, so splitting at
// runs of line ends does not change the tokens.
constexpr const char* kGemma4Lines[] = {R"re(\n+)re"};

constexpr PreTokenizerRow kRows[] = {
    {.name = "default", .expressions = kDefault},
    {.name = "gpt-2", .expressions = kGpt2},
    {.name = "phi-2", .expressions = kGpt2},
    {.name = "mpt", .expressions = kGpt2, .normalizes_nfc = true},
    {.name = "olmo", .expressions = kGpt2, .normalizes_nfc = true},
    {.name = "jais", .expressions = kGpt2},
    {.name = "llama-bpe", .expressions = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "llama3", .expressions = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "llama-v3", .expressions = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "falcon3", .expressions = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "lfm2", .expressions = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "pixtral", .expressions = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "glm4", .expressions = kLlama3, .ignores_merges = true},
    {.name = "glm5", .expressions = kLlama3, .ignores_merges = true},
    {.name = "chatglm-bpe", .expressions = kLlama3},
    {.name = "dbrx", .expressions = kLlama3},
    {.name = "smaug-bpe", .expressions = kLlama3},
    {.name = "qwen2", .expressions = kQwen2, .normalizes_nfc = true},
    {.name = "qwen35", .expressions = kQwen35, .normalizes_nfc = true},
    {.name = "deepseek-r1-qwen", .expressions = kQwen2},
    {.name = "stablelm2", .expressions = kQwen2, .normalizes_nfc = true},
    {.name = "smollm", .expressions = kDigitByDigit},
    {.name = "starcoder", .expressions = kDigitByDigit},
    {.name = "refact", .expressions = kDigitByDigit},
    {.name = "command-r", .expressions = kDigitByDigit, .normalizes_nfc = true},
    {.name = "codeshell", .expressions = kDigitByDigit},
    {.name = "falcon", .expressions = kFalcon},
    {.name = "deepseek-llm", .expressions = kDeepSeekLlm},
    {.name = "deepseek-coder", .expressions = kDeepSeekCoder},
    {.name = "deepseek-v3", .expressions = kDeepSeekV3},
    {.name = "gpt-4o", .expressions = kGpt4o},
    {.name = "llama4", .expressions = kGpt4o},
    {.name = "minimax-m2", .expressions = kGpt4o},
    {.name = "kimi-k2", .expressions = kKimiK2},
    {.name = "tekken", .expressions = kTekken, .ignores_merges = true, .adds_bos = true},
    {.name = "gemma4",
     .expressions = kGemma4Lines,
     .adds_bos = true,
     .requires_bos = true,
     .unit = BpeUnit::Character},
};

}  // namespace

const PreTokenizerRow* find_pre_tokenizer(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &PreTokenizerRow::name);
  return row == std::end(kRows) ? nullptr : row;
}

std::string known_pre_tokenizers() {
  return fmt::format("{}", fmt::join(kRows | std::views::transform(&PreTokenizerRow::name), ", "));
}

}  // namespace leasehold
