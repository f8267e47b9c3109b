/// Reads the arguments of calls that models write as literals of Python or of Gemma 4. Pure.
///
///   Python    f(city="Oslo", days=[1, 2], more={"a": None})
///   Gemma 4   f{city:<|"|>Oslo<|"|>,days:[1,2],more:{a:null}}
/// Words of JSON and of Python mean the same: true and True, null and None.
/// Source: the chat templates of LFM2 and Gemma 4.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold {

class LiteralReader {
 public:
  enum class Style : std::uint8_t { Python, Gemma };
  using Json = nlohmann::ordered_json;  ///< Arguments keep their order.
  static constexpr int kMaxDepth = 64;

  LiteralReader(std::string_view text, Style style) : rest_(text), style_(style) {}

  /// Skips whitespace, then `expected` if it follows. Returns true if it did.
  bool skip(std::string_view expected);
  bool at_end();
  /// A name of letters, digits, "_", "." and "-"; empty if none follows.
  std::string_view name();
  /// The members up to `close`, which is read too: `name=value` in Python, `name:value` in Gemma.
  /// Nothing if the text is not such a list, or nests more than kMaxDepth levels.
  std::optional<Json> members(std::string_view separator, std::string_view close, int depth = 1);

 private:
  std::optional<Json> value(int depth);
  std::optional<Json> elements(int depth);
  std::optional<Json> word();
  std::optional<std::string> quoted();
  std::optional<std::string> escaped(char quote);
  std::optional<std::string> key();

  std::string_view rest_;
  Style style_;
};

}  // namespace leasehold
