// json.dumps, for the filter tojson.
#include <algorithm>
#include <cmath>

#include "worker/text/chat/jinja/formatting.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

constexpr std::string_view kJsonEscaped = "\"\\\n\r\t\b\f";
constexpr std::string_view kJsonEscapeLetters = "\"\\nrtbf";

void append_unicode_escape(std::string& out, std::uint32_t unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

void append_surrogate_escape(std::string& out, std::string_view character) {
  std::uint32_t number = code_point_of(character);
  if (number < 0x10000) return append_unicode_escape(out, number);
  number -= 0x10000;
  append_unicode_escape(out, 0xD800 + (number >> 10));
  append_unicode_escape(out, 0xDC00 + (number & 0x3FF));
}

void append_quoted(std::string& out, std::string_view text, bool ascii_only) {
  out += '"';
  for (const std::string_view character : characters_of(text)) {
    if (const auto at = kJsonEscaped.find(character[0]); at != std::string_view::npos) {
      out.append(1, '\\').append(1, kJsonEscapeLetters[at]);
    } else if (static_cast<unsigned char>(character[0]) < 0x20) {
      append_unicode_escape(out, static_cast<unsigned char>(character[0]));
    } else if (ascii_only && !is_ascii(character)) {
      append_surrogate_escape(out, character);
    } else {
      out += character;
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Result<void> write(const Value& value) {
    TRY(runtime_.charge_for(value));
    if (out_.size() > runtime_.limits().output_bytes) {
      return runtime_.too_long("the output of tojson exceeds the size of a prompt");
    }
    if (const List* list = value.as_list()) return write_list(*list);
    if (const Dict* dict = value.as_dict()) return write_dict(*dict);
    if (const std::string* text = value.as_text()) return write_text(*text);
    out_ += TRY(plain(value));
    return {};
  }

  std::string take() && { return std::move(out_); }

 private:
  Result<std::string> plain(const Value& value) {
    if (value.is_none()) return std::string("null");
    if (const bool* truth = value.get<bool>()) return std::string(*truth ? "true" : "false");
    if (value.is_integer()) return std::to_string(value.integer());
    if (!value.is_number()) {
      return runtime_.bad_request(fmt::format("'{}' is not JSON serializable", value.type_name()));
    }
    const double number = value.number();
    if (std::isnan(number)) return std::string("NaN");
    if (std::isinf(number)) return std::string(number < 0 ? "-Infinity" : "Infinity");
    return float_text(number);
  }

  Result<void> write_text(std::string_view text) {
    TRY(runtime_.charge(text.size() / 8));
    append_quoted(out_, text, style_.ascii_only);
    return {};
  }

  Result<void> write_list(const List& list) {
    if (list.items.empty()) return put("[]");
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      TRY(begin_item(i == 0));
      TRY(write(list.items[i]));
    }
    --level_;
    TRY(new_line());
    return put("]");
  }

  Result<void> write_dict(const Dict& dict) {
    if (dict.entries().empty()) return put("{}");
    std::vector<Dict::Entry> entries = dict.entries();
    if (style_.sort_keys) TRY(sort(entries));
    out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      TRY(begin_item(i == 0));
      TRY(write_key(entries[i].first));
      out_ += style_.key_separator;
      TRY(write(entries[i].second));
    }
    --level_;
    TRY(new_line());
    return put("}");
  }

  Result<void> write_key(const Value& key) {
    if (const std::string* text = key.as_text()) return write_text(*text);
    append_quoted(out_, TRY(plain(key)), style_.ascii_only);
    return {};
  }

  Result<void> sort(std::vector<Dict::Entry>& entries) {
    const auto is_text = [](const Dict::Entry& entry) { return entry.first.is_text(); };
    if (!std::ranges::all_of(entries, is_text)) {
      return runtime_.unsupported(
          "tojson with sort_keys is not supported for keys that are not text");
    }
    std::ranges::stable_sort(entries, {}, [](const Dict::Entry& entry) -> const std::string& {
      return *entry.first.as_text();
    });
    return {};
  }

  Result<void> begin_item(bool first) {
    if (!first) out_ += style_.item_separator;
    return new_line();
  }

  Result<void> new_line() {
    if (!style_.indent) return {};
    TRY(runtime_.charge_bytes(style_.indent->size() * level_));
    out_ += '\n';
    for (std::size_t i = 0; i < level_; ++i) out_ += *style_.indent;
    return {};
  }

  Result<void> put(std::string_view text) {
    out_ += text;
    return {};
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::size_t level_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  TRY(writer.write(value));
  return std::move(writer).take();
}

}  // namespace leasehold::jinja
