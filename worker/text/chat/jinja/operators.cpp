#include "worker/text/chat/jinja/operators.hpp"

#include <algorithm>
#include <cmath>

#include "worker/text/chat/jinja/unicode.hpp"

namespace leasehold::jinja {
namespace {

std::unexpected<Error> unsupported_operands(Runtime& runtime, std::string_view operation,
                                            const Value& left, const Value& right) {
  const auto detail_of = [](const Value& value) {
    const auto* undefined = value.get<Undefined>();
    return undefined != nullptr && undefined->what ? *undefined->what : std::string();
  };
  for (const Value* value : {&left, &right})
    if (const std::string what = detail_of(*value); !what.empty()) return runtime.bad_request(what);
  return runtime.bad_request(fmt::format("'{}' is not supported between '{}' and '{}'", operation,
                                         left.type_name(), right.type_name()));
}

Result<Value> number(Runtime& runtime, double value) {
  if (!std::isinf(value)) return Value(value);
  return runtime.bad_request("a float overflows");
}

/// Python rounds towards minus infinity; the remainder has the sign of the divisor.
std::int64_t floor_division(std::int64_t left, std::int64_t right) {
  const std::int64_t quotient = left / right;
  const bool rounded_up = left % right != 0 && (left < 0) != (right < 0);
  return rounded_up ? quotient - 1 : quotient;
}

double float_remainder(double left, double right) {
  const double remainder = std::fmod(left, right);
  if (remainder == 0) return std::copysign(0.0, right);
  return (remainder < 0) != (right < 0) ? remainder + right : remainder;
}

double float_floor_division(double left, double right) {
  const double quotient = (left - float_remainder(left, right)) / right;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

/// Returns nothing on overflow.
std::optional<std::int64_t> power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  // Bases other than 0, 1 and -1 overflow within 64 iterations.
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  return result;
}

Result<Value> integer_arithmetic(Runtime& runtime, std::string_view operation, std::int64_t left,
                                 std::int64_t right) {
  std::int64_t result = 0;
  bool overflow = false;
  if (operation == "+") {
    overflow = __builtin_add_overflow(left, right, &result);
  } else if (operation == "-") {
    overflow = __builtin_sub_overflow(left, right, &result);
  } else if (operation == "*") {
    overflow = __builtin_mul_overflow(left, right, &result);
  } else if (operation == "**") {
    const auto value = power(left, right);
    overflow = !value;
    result = value.value_or(0);
  } else if (right == -1) {
    overflow = operation == "//" && __builtin_sub_overflow(std::int64_t{0}, left, &result);
  } else if (operation == "//") {
    result = floor_division(left, right);
  } else {
    result = left - floor_division(left, right) * right;
  }
  if (overflow) return runtime.bad_request("an integer overflows 64 bits");
  return Value(result);
}

Result<Value> float_arithmetic(Runtime& runtime, std::string_view operation, double left,
                               double right) {
  if (operation == "+") return number(runtime, left + right);
  if (operation == "-") return number(runtime, left - right);
  if (operation == "*") return number(runtime, left * right);
  if (operation == "/") return number(runtime, left / right);
  if (operation == "//") return number(runtime, float_floor_division(left, right));
  if (operation == "%") return number(runtime, float_remainder(left, right));
  const double result = std::pow(left, right);
  if (std::isnan(result) && !std::isnan(left) && !std::isnan(right)) {
    return runtime.unsupported("complex numbers are not supported");
  }
  return number(runtime, result);
}

Result<Value> number_arithmetic(Runtime& runtime, std::string_view operation, const Value& left,
                                const Value& right) {
  const bool divides = operation == "/" || operation == "//" || operation == "%";
  const bool negative_power_of_zero = operation == "**" && left.number() == 0 && right.number() < 0;
  if ((divides && right.number() == 0) || negative_power_of_zero) {
    return runtime.bad_request("division by zero");
  }
  const bool to_float = operation == "/" || (operation == "**" && right.number() < 0);
  if (left.is_integer() && right.is_integer() && !to_float) {
    return integer_arithmetic(runtime, operation, left.integer(), right.integer());
  }
  return float_arithmetic(runtime, operation, left.number(), right.number());
}

Result<Value> repeat(Runtime& runtime, const Value& value, std::int64_t times) {
  const std::uint64_t count = times > 0 ? static_cast<std::uint64_t>(times) : 0;
  const MarkedText* text = value.as_marked_text();
  const std::uint64_t size = text != nullptr ? text->size() : value.as_list()->items.size();
  const std::uint64_t most = runtime.limits().output_bytes;
  if (size > 0 && count > most / size) return runtime.too_long("the repetition is too long");
  TRY(runtime.charge(size * count / (text != nullptr ? 64 : 1)));
  if (text != nullptr) {
    MarkedText whole;
    for (std::uint64_t i = 0; i < count && size > 0; ++i) whole.append(*text);
    return runtime.text(std::move(whole));
  }
  const List& list = *value.as_list();
  std::vector<Value> items;
  for (std::uint64_t i = 0; i < count && size > 0; ++i)
    items.insert(items.end(), list.items.begin(), list.items.end());
  return runtime.list(std::move(items), list.is_tuple);
}

bool is_sequence(const Value& value) {
  return value.is_text() || value.as_list() != nullptr;
}

Result<Value> concatenate(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is_text() && right.is_text()) {
    MarkedText both = *left.as_marked_text();
    both.append(*right.as_marked_text());
    return runtime.text(std::move(both));
  }
  const List* first = left.as_list();
  const List* second = right.as_list();
  const bool alike = first != nullptr && second != nullptr && first->is_tuple == second->is_tuple;
  if (!alike) return unsupported_operands(runtime, "+", left, right);
  TRY(runtime.charge(first->items.size() + second->items.size()));
  std::vector<Value> items = first->items;
  items.insert(items.end(), second->items.begin(), second->items.end());
  return runtime.list(std::move(items), first->is_tuple);
}

/// The indices that a slice selects of `length` elements, in order.
Result<std::vector<std::size_t>> slice_indices(Runtime& runtime, std::size_t length,
                                               const SliceBounds& bounds) {
  for (const Value* bound : {&bounds.start, &bounds.stop, &bounds.step}) {
    if (bound->is_none() || bound->is_integer()) continue;
    return runtime.bad_request(
        fmt::format("slice bounds must be integers, not '{}'", bound->type_name()));
  }
  const std::int64_t step = bounds.step.is_none() ? 1 : bounds.step.integer();
  if (step == 0) return runtime.bad_request("the step of a slice is zero");
  const auto size = static_cast<std::int64_t>(length);
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? size : size - 1;
  const auto place_of = [&](const Value& bound, std::int64_t fallback) {
    if (bound.is_none()) return fallback;
    const std::int64_t position = bound.integer();
    return std::clamp(position < 0 ? position + size : position, low, high);
  };
  const std::int64_t stop = place_of(bounds.stop, step > 0 ? high : low);
  std::vector<std::size_t> indices;
  for (std::int64_t i = place_of(bounds.start, step > 0 ? low : high);
       step > 0 ? i < stop : i > stop;) {
    indices.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return indices;
}

}  // namespace

Result<Value> arithmetic(Runtime& runtime, std::string_view operation, const Value& left,
                         const Value& right) {
  if (left.is_number() && right.is_number())
    return number_arithmetic(runtime, operation, left, right);
  if (operation == "+") return concatenate(runtime, left, right);
  if (operation == "*" && is_sequence(left) && right.is_integer()) {
    return repeat(runtime, left, right.integer());
  }
  if (operation == "*" && is_sequence(right) && left.is_integer()) {
    return repeat(runtime, right, left.integer());
  }
  if (operation == "%" && left.is_text())
    return runtime.unsupported("formatting text with '%' is not supported");
  return unsupported_operands(runtime, operation, left, right);
}

Result<Value> apply_sign(Runtime& runtime, std::string_view sign, const Value& operand) {
  if (!operand.is_number()) {
    return runtime.bad_request(
        fmt::format("'{}' is not supported for '{}'", sign, operand.type_name()));
  }
  const Value factor(std::int64_t{sign == "-" ? -1 : 1});
  return arithmetic(runtime, "*", operand, factor);
}

Result<Value> slice(Runtime& runtime, const Value& value, const SliceBounds& bounds) {
  if (!is_sequence(value)) {
    return runtime.bad_request(fmt::format("'{}' cannot be sliced", value.type_name()));
  }
  TRY(runtime.charge_for(value));
  if (const MarkedText* text = value.as_marked_text()) {
    TRY(runtime.charge(text->size() / 4));
    const auto characters = characters_of(text->bytes());
    MarkedText part;
    for (const std::size_t i : TRY(slice_indices(runtime, characters.size(), bounds)))
      part.append_part(*text, characters[i]);
    return runtime.text(std::move(part));
  }
  const List& list = *value.as_list();
  std::vector<Value> items;
  for (const std::size_t i : TRY(slice_indices(runtime, list.items.size(), bounds)))
    items.push_back(list.items[i]);
  return runtime.list(std::move(items), list.is_tuple);
}

}  // namespace leasehold::jinja
