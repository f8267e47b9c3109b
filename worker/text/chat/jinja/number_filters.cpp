// Filters that make numbers, and default.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "worker/text/chat/jinja/builtins.hpp"
#include "worker/text/chat/jinja/operators.hpp"
#include "worker/text/chat/jinja/text_operations.hpp"
#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

constexpr double kLargestInteger = 9223372036854774784.0;  // the last double below 2^63

std::string_view without_outer_space(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  return text;
}

std::optional<double> read_float(std::string_view text) {
  text = without_outer_space(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole =
      !text.empty() && read.ec == std::errc{} && read.ptr == text.data() + text.size();
  if (!whole) return std::nullopt;
  return number;
}

std::optional<std::int64_t> read_integer(std::string_view text, std::int64_t base) {
  text = without_outer_space(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && text.starts_with(prefix)) text.remove_prefix(prefix.size());
  if (text.empty() || text[0] == '-') return std::nullopt;
  std::int64_t number = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), number, static_cast<int>(base));
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return negative ? -number : number;
}

Result<Value> to_int(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  Value fallback = given.value(0, Value(std::int64_t{0}));
  const Value base_value = given.value(1, Value(std::int64_t{10}));
  const std::int64_t base = TRY(require_integer(runtime, "the base of int", base_value));
  if (base < 2 || base > 36) return runtime.bad_request("the base of int is from 2 to 36");
  if (subject.is_undefined())
    return attribute_of(runtime, subject, "int");  // reports the undefined value
  if (subject.is_integer()) return Value(subject.integer());
  std::optional<double> number;
  if (const std::string* text = subject.as_text()) {
    if (const auto integer = read_integer(*text, base)) return Value(*integer);
    number = read_float(*text);
  }
  if (subject.is_number()) number = subject.number();
  if (!number || !(std::fabs(*number) <= kLargestInteger)) return fallback;
  return Value(static_cast<std::int64_t>(*number));
}

Result<Value> to_float(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value fallback = given.value(0, Value(0.0));
  if (subject.is_undefined())
    return attribute_of(runtime, subject, "float");  // reports the undefined value
  if (subject.is_number()) return Value(subject.number());
  const std::string* text = subject.as_text();
  const auto number = text != nullptr ? read_float(*text) : std::nullopt;
  return number ? Value(*number) : fallback;
}

Result<Value> absolute(Runtime& runtime, const Value& subject, const BoundArguments&) {
  if (subject.is_number() && !(subject.number() < 0)) return apply_sign(runtime, "+", subject);
  return apply_sign(runtime, "-", subject);
}

/// Rounds in decimal as Python does: by the exact value of the double, ties to even.
double rounded(double number, int digits) {
  char text[400];
  const auto end =
      std::to_chars(text, text + sizeof(text), number, std::chars_format::fixed, digits);
  double out = number;
  if (end.ec == std::errc{}) std::from_chars(text, end.ptr, out);
  return out;
}

Result<Value> round(Runtime& runtime, const Value& subject, const BoundArguments& given) {
  const Value precision = given.value(0, Value(std::int64_t{0}));
  const Value method_value = given.value(1, Value::text("common"));
  const std::string method = TRY(require_text(runtime, "the method of round", method_value));
  const std::int64_t digits = TRY(require_integer(runtime, "the precision of round", precision));
  if (digits < 0 || digits > 15) return runtime.unsupported("round supports 0 to 15 digits");
  if (!subject.is_number()) {
    return runtime.bad_request(fmt::format("'{}' cannot be rounded", subject.type_name()));
  }
  if (method == "common" && subject.is_integer()) return Value(subject.integer());
  const double number = subject.number();
  if (method == "common") return Value(rounded(number, static_cast<int>(digits)));
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (method == "ceil") return Value((std::ceil(number * scale) + 0.0) / scale);  // no -0
  if (method == "floor") return Value(std::floor(number * scale) / scale);
  return runtime.bad_request("the method of round is common, ceil or floor");
}

Result<Value> default_value(Runtime&, const Value& subject, const BoundArguments& given) {
  const Value fallback = given.value(0, Value::text(""));
  const bool also_false = given.flag(1);
  const bool wanted = subject.is_undefined() || (also_false && !subject.is_truthy());
  return wanted ? fallback : subject;
}

constexpr Builtin<Filter> kNumberFilters[] = {
    {"abs", absolute},
    {"d", default_value, {"default_value", "boolean"}},
    {"default", default_value, {"default_value", "boolean"}},
    {"float", to_float, {"default"}},
    {"int", to_int, {"default", "base"}},
    {"round", round, {"precision", "method"}},
};

}  // namespace

const Builtin<Filter>* find_number_filter(std::string_view name) {
  return find_builtin(kNumberFilters, name);
}

}  // namespace leasehold::jinja
